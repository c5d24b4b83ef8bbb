package cli

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/request"
)

type requestFlags struct {
	session      string
	plan         bool
	presentation string
	format       string
	saveTo       string
	id           uint64
}

func (a *app) cmdRequest() *cobra.Command {
	var o requestFlags
	c := &cobra.Command{
		Use:   "request <ops>",
		Short: "Ask for verbs in the ops language, as agents do",
		Long: `Run a request of the ops language as the operator and print what came of each
operation. reeve pack list shows the verbs.

  verb(name=value, …)          one operation
  a() | b(x=$prev.id)          a chain: each sees the result before it
  [a(), b() | c()]             a batch of chains, run beside each other
  {"tool":"verb","args":{}}    JSON, or an array of these

The status is that of the worst entry: 10 when it is not known what an operation
did, then that of its failure, 6 when it was denied, 7 when it waits for you.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve request 'runtime.inspect()'
  reeve request '[whoami(), stats()]' --json --jq '.data.results[].result'
  reeve request --plan 'verbs(pack="held") | whoami()'
  echo 'whoami()' | reeve request -`,
	}
	f := c.Flags()
	f.StringVarP(&o.session, "session", "s", "", "on behalf of this session (default: the working directory's)")
	f.BoolVar(&o.plan, "plan", false, "only say how the text is read; nothing is run and nothing is permitted")
	f.StringVar(&o.presentation, "presentation", string(request.Verbose), "agent (shortened), verbose or human")
	f.StringVar(&o.format, "format", string(request.FormatAuto), "how people see results: auto (by their shape), table or json")
	f.StringVar(&o.saveTo, "save-to", "", "write the entries to this new file, one a line, and print what is in it")
	f.Uint64Var(&o.id, "request-id", 0, "number that groups the audit rows of the request (0: one is made)")
	a.completeFlag(c, "session", a.completeSessions())
	a.completeFlag(c, "presentation", cobra.FixedCompletions([]string{"agent", "verbose", "human"}, cobra.ShellCompDirectiveNoFileComp))
	completeFields(c, members(reflect.TypeFor[requestAnswer]()))
	a.completeFlag(c, "format", cobra.FixedCompletions([]string{"auto", "table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	c.PreRunE = func(c *cobra.Command, _ []string) error { return a.checkRequest(c, o) }
	return a.does(c, func(ctx context.Context, args []string) answer {
		ops, err := a.opsFrom(args[0])
		if err != nil {
			return failed(err)
		}
		return a.asks(func(ctx context.Context, c *control.Client, _ []string) answer { return a.request(ctx, c, ops, o) })(ctx, args)
	})
}

// checkRequest refuses flags that cannot be meant together.
func (a *app) checkRequest(c *cobra.Command, o requestFlags) error {
	if o.plan {
		for _, name := range []string{"presentation", "format", "save-to", "request-id"} {
			if c.Flags().Changed(name) {
				return fault.New(fault.Usage, "read arguments", "--"+name, "it has no meaning with --plan").WithNext("leave --%s out, or --plan", name)
			}
		}
	}
	switch o.format {
	case "auto", "table", "json":
	default:
		return fault.New(fault.Usage, "read arguments", "--format "+o.format, "it is auto, table or json")
	}
	if c.Flags().Changed("format") && a.machine() {
		return fault.New(fault.Usage, "read arguments", "--format", "it is for people; what a program reads is JSON").WithNext("leave --format out")
	}
	return nil
}

// opsFrom is the text of a request, from standard input for a dash.
func (a *app) opsFrom(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := io.ReadAll(io.LimitReader(a.io.In, request.MaxBytes+1))
	if err != nil {
		return "", fault.Wrap(err, fault.Usage, "read request", "standard input")
	}
	return string(b), nil
}

func (a *app) request(ctx context.Context, c control.Service, ops string, o requestFlags) answer {
	session := DefaultSession(a.io.WorkDir)
	if o.session != "" && o.session != "." {
		session = o.session
	}
	call := a.call(session, ops)
	call.Presentation, call.RequestID, call.Plan = o.presentation, o.id, o.plan
	if o.plan {
		call.Presentation = ""
	}
	sink, err := a.reserve(o.saveTo)
	if err != nil {
		return failed(err)
	}
	r, err := c.Request(ctx, call)
	if err != nil {
		sink.drop()
		return failed(a.excerpted(err, ops))
	}
	if o.plan {
		return planAnswer(r.Body)
	}
	got, err := readAnswer(r.Body)
	if err != nil {
		return failed(err)
	}
	ans := answer{kind: "request", data: got, err: worst(got.Results), text: func(p printer) { a.showAnswer(p, got, o.format) }}
	if sink == nil {
		return ans
	}
	m, err := sink.save(got.Results)
	if err != nil { // what was done is told all the same
		ans.err = err
		return ans
	}
	return answer{kind: "manifest", data: m, err: ans.err, text: func(p printer) { showManifest(m, p) }}
}

// excerpted shows a person where a text could not be read.
func (a *app) excerpted(err error, ops string) error {
	if fault.CodeOf(err) != fault.InvalidRequest || a.machine() {
		return err
	}
	plan := request.MakePlan(ops, none{})
	if plan.Error == nil {
		return err
	}
	if plan.Error.Excerpt != "" {
		fmt.Fprintf(a.io.Err, "%s\n", inert(plan.Error.Excerpt))
	}
	return fault.Wrap(err, fault.InvalidRequest, "", "").WithNext("mend the text; reeve request --plan says how it is read")
}

// none is a catalogue of nothing: enough to read a text again.
type none struct{}

func (none) PackOf(string) (string, bool) { return "", false }

// showAnswer prints the result of one operation alone, and those of several under
// their headings.
func (a *app) showAnswer(p printer, got requestAnswer, format string) {
	alone := len(got.Results) == 1
	for i, e := range got.Results {
		for _, v := range e.Advisories {
			a.note("%s", v.Message)
		}
		if !alone {
			if i > 0 {
				p.line("")
			}
			p.line("%s", p.paint(dim, fmt.Sprintf("[%d] %s: %s", e.Index, visible(e.Tool), e.word())))
		}
		switch {
		case e.OK:
			p.result(e.Result, format)
		case e.Error == nil:
			p.line("%s", inert(e.Message))
		default:
			if !alone {
				p.line("%s", inert(e.Error.Message))
			}
			p.why(e.Error)
		}
	}
	if !alone {
		s := got.Summary
		p.line("\n%s: %d succeeded, %d failed, %d aborted", got.Status, s.Succeeded, s.Failed, s.Aborted)
	}
}

// word is how an operation ended.
func (e *entry) word() string {
	switch {
	case e.OK:
		return "ok"
	case e.Aborted:
		return "aborted"
	}
	return string(e.fault().Code)
}

// why is what a denial looked at.
func (p printer) why(f *opFailure) {
	facts := make([]string, 0, len(f.Facts))
	for _, m := range membersOf(f.Facts) {
		facts = append(facts, m.name+" = "+plain(m.value))
	}
	p.pairs("rules", strings.Join(f.Rules, ", "), "because", strings.Join(facts, ", "), "audit row", f.Audit, "act", f.Act)
}

// planAnswer is a plan; a text that cannot be read is an error with its plan.
func planAnswer(body []byte) answer {
	var plan struct {
		Parsed bool   `json:"parsed"`
		Mode   string `json:"mode"`
		Stages []struct {
			Index int            `json:"index"`
			Verb  string         `json:"verb"`
			Pack  string         `json:"pack"`
			Known bool           `json:"known"`
			Args  jsontext.Value `json:"args"`
			Unit  int            `json:"unit_index"`
		} `json:"stages"`
		Error *request.PlanFail `json:"error"`
	}
	if err := json.Unmarshal(body, &plan); err != nil {
		return failed(fault.Wrap(err, fault.Internal, "read plan", ""))
	}
	ans := answer{kind: "plan", data: jsontext.Value(body)}
	if e := plan.Error; e != nil {
		ans.err = fault.New(fault.InvalidRequest, "read request", "", "%s", e.Message).WithNext("mend the text at the position named")
		ans.text = func(p printer) {
			if e.Excerpt != "" {
				p.line("%s", inert(e.Excerpt))
			}
		}
		return ans
	}
	ans.text = func(p printer) {
		rows := make([][]string, len(plan.Stages))
		for i, s := range plan.Stages {
			pack := s.Pack
			if !s.Known {
				pack = "unknown verb"
			}
			rows[i] = []string{fmt.Sprint(s.Index), fmt.Sprint(s.Unit), s.Verb, pack, string(s.Args)}
		}
		p.table("nothing to do", []string{"OP", "UNIT", "VERB", "PACK", "ARGUMENTS"}, rows)
	}
	return ans
}
