package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
)

// completeWithin bounds a completion: a shell waits for it at every tab.
const completeWithin = 80 * time.Millisecond

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// live completes from what a running core says in time. It starts no core and no
// answer is an empty answer.
func (a *app) live(f func(ctx context.Context, c control.Service) ([]string, error)) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		c, _, err := a.running(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := f(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func first(c completer) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, begun)
	}
}

func (a *app) completeSessions() completer {
	return a.live(func(ctx context.Context, c control.Service) ([]string, error) {
		all, err := c.ListSessions(ctx)
		var found []string
		for _, s := range all {
			found = append(found, cobra.CompletionWithDesc(s.Session, s.State+", "+span(time.Since(time.UnixMilli(s.LastAtMS)))+" ago"))
		}
		return found, err
	})
}

func (a *app) completeCells() completer {
	return a.live(func(ctx context.Context, c control.Service) ([]string, error) {
		all, err := c.ListCells(ctx, "", 50)
		var found []string
		for _, s := range all {
			found = append(found, cobra.CompletionWithDesc(s.Cell, s.Status+", "+span(time.Since(time.UnixMilli(s.StartedAtMS)))+" ago, "+clip(visible(s.Code), 30)))
		}
		return found, err
	})
}

// completeKinds completes a comma-separated list of event kinds.
func completeKinds(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	done := ""
	if i := strings.LastIndexByte(begun, ','); i >= 0 {
		done = begun[:i+1]
	}
	var found []string
	for _, s := range event.Shapes() {
		if name := done + string(s.Kind); !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeFields lets --fields of c complete the members of its data.
func completeFields(c *cobra.Command, names []string) {
	c.Annotations = map[string]string{fieldsKey: strings.Join(names, ",")}
}

// fieldsKey holds the members of a command's data, for the completion of --fields.
const fieldsKey = "reeve.fields"

func completeFieldList(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	done := ""
	if i := strings.LastIndexByte(begun, ','); i >= 0 {
		done = begun[:i+1]
	}
	var found []string
	for _, n := range strings.Split(c.Annotations[fieldsKey], ",") {
		found = append(found, done+n)
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
