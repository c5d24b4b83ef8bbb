package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// verbRow is a verb as the catalogue lists it.
type verbRow struct {
	Verb        string `json:"verb"`
	Pack        string `json:"pack"`
	Category    string `json:"category"`
	Effect      string `json:"effect"`
	Description string `json:"description"`
}

// packRow is a pack with what its verbs can touch.
type packRow struct {
	Pack    string   `json:"pack"`
	Verbs   []string `json:"verbs"`
	Effects []string `json:"effects"`
}

// verbHelp is what a verb tells of itself.
type verbHelp struct {
	Verb        string      `json:"verb"`
	Pack        string      `json:"pack"`
	Description string      `json:"description"`
	Category    string      `json:"category"`
	Visibility  string      `json:"visibility"`
	Params      []verbParam `json:"params"`
	InputSchema control.Raw `json:"input_schema"`
	Note        string      `json:"note"`
}

type verbParam struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

func (a *app) cmdPack() *cobra.Command {
	return group(&cobra.Command{
		Use:   "pack",
		Short: "Packs: the verbs that can be asked for",
		Example: `  reeve pack list
  reeve pack show workbench.execute
  reeve pack search output`,
	}, a.cmdPackList(), a.cmdPackShow(), a.cmdPackSearch())
}

func (a *app) cmdPackList() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List packs with their verbs",
		Example: `  reeve pack list
  reeve pack list --fields pack
  reeve pack list --json --jq '.data[].verbs[]'`,
	}
	completeFields(c, members(reflect.TypeFor[packRow]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		all, err := askList[verbRow](ctx, a, c, "verbs", nil)
		if err != nil {
			return failed(err)
		}
		packs := packsOf(all)
		return answer{kind: "packs", data: packs, rows: true, text: func(p printer) {
			rows := make([][]string, len(packs))
			for i, x := range packs {
				rows[i] = []string{x.Pack, strings.Join(x.Effects, ","), strings.Join(x.Verbs, " ")}
			}
			p.table("no packs", []string{"PACK", "EFFECTS", "VERBS"}, rows)
		}}
	}))
}

func packsOf(all []verbRow) []packRow {
	packs := []packRow{}
	for _, v := range all {
		i := slices.IndexFunc(packs, func(p packRow) bool { return p.Pack == v.Pack })
		if i < 0 {
			i = len(packs)
			packs = append(packs, packRow{Pack: v.Pack, Verbs: []string{}, Effects: []string{}})
		}
		packs[i].Verbs = append(packs[i].Verbs, v.Verb)
		if !slices.Contains(packs[i].Effects, v.Effect) {
			packs[i].Effects = append(packs[i].Effects, v.Effect)
		}
	}
	slices.SortFunc(packs, func(x, y packRow) int { return strings.Compare(x.Pack, y.Pack) })
	return packs
}

func (a *app) cmdPackShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show <pack or verb>",
		Short: "Show the verbs of a pack, or one verb with its arguments",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve pack show held
  reeve pack show workbench.execute
  reeve pack show whoami --json --jq .data.input_schema`,
		ValidArgsFunction: first(a.completeVerbs()),
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		var help verbHelp
		err := a.ask(ctx, c, args[0], arguments{"help": true}, &help)
		if err == nil {
			return answer{kind: "verb", data: help, text: func(p printer) { showVerb(p, help) }}
		}
		if fault.CodeOf(err) != fault.UnknownMethod {
			return failed(err)
		}
		all, err := askList[verbRow](ctx, a, c, "verbs", arguments{"pack": args[0]})
		return verbsAnswer(all, leads(err, map[fault.Code]string{fault.NotFound: "reeve pack list"}))
	}))
}

func showVerb(p printer, v verbHelp) {
	p.pairs("verb", v.Verb, "pack", v.Pack, "category", v.Category, "does", v.Description, "visibility", v.Visibility, "note", v.Note)
	if len(v.Params) == 0 {
		return
	}
	p.line("")
	rows := make([][]string, len(v.Params))
	for i, x := range v.Params {
		required := ""
		if x.Required {
			required = "required"
		}
		rows[i] = []string{x.Name, x.Type, required, x.Description}
	}
	p.table("", []string{"ARGUMENT", "TYPE", "", "MEANING"}, rows)
}

func (a *app) cmdPackSearch() *cobra.Command {
	c := &cobra.Command{
		Use:   "search <text>",
		Short: "Find verbs whose name or description has a text",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve pack search session
  reeve pack search audit --fields verb
  reeve pack search held --json --jq '.data[].verb'`,
	}
	completeFields(c, members(reflect.TypeFor[verbRow]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		all, err := askList[verbRow](ctx, a, c, "verbs", arguments{}.text("grep", args[0]))
		return verbsAnswer(all, err)
	}))
}

func verbsAnswer(all []verbRow, err error) answer {
	if err != nil {
		return failed(err)
	}
	return answer{kind: "verbs", data: all, rows: true, text: func(p printer) {
		rows := make([][]string, len(all))
		for i, v := range all {
			rows[i] = []string{v.Verb, v.Effect, v.Description}
		}
		p.table("no verb has it; reeve pack list shows all", []string{"VERB", "EFFECT", "DOES"}, rows)
	}}
}

func (a *app) completeVerbs() completer {
	return a.live(func(ctx context.Context, c control.Service) ([]string, error) {
		all, err := askList[verbRow](ctx, a, c, "verbs", nil)
		found := make([]string, len(all))
		for i, v := range all {
			found[i] = cobra.CompletionWithDesc(v.Verb, v.Description)
		}
		return found, err
	})
}
