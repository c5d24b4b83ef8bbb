package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// outputRange is the answer of cell output: Text, or Base64 when the bytes are no
// UTF-8. Late is what was printed after the cell had ended, apart from them.
type outputRange struct {
	Cell   string       `json:"cell"`
	Offset int64        `json:"offset"`
	Bytes  int64        `json:"bytes"`
	Total  int64        `json:"total"`
	Gap    *control.Gap `json:"gap"`
	Text   *string      `json:"text"`
	Base64 *string      `json:"base64"`
	Late   string       `json:"late"`
}

type cellOutput struct {
	offset int64
	limit  int64
	follow bool
	raw    bool
}

// followEvery is how often a running cell is looked at: below what a person notices.
const followEvery = 200 * time.Millisecond

func (a *app) cmdCellOutput() *cobra.Command {
	var o cellOutput
	c := &cobra.Command{
		Use:   "output <cell>",
		Short: "Print everything kept of what a cell printed",
		Long: `Print the bytes that are kept of what a cell printed, also when its result was cut.
When the middle was dropped a note names the missing bytes. What was printed after the
cell had ended comes last, and a note says where it begins. On a terminal control
characters are shown and do nothing, unless --raw is given.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve cell output cell_0abc > all.txt
  reeve cell output cell_0abc --offset 65536 --limit 1000
  reeve cell output cell_0abc --follow`,
		ValidArgsFunction: first(a.completeCells()),
	}
	c.Flags().Int64Var(&o.offset, "offset", 0, "begin at this byte of the whole output")
	c.Flags().Int64Var(&o.limit, "limit", 0, "at most this many bytes (0: all)")
	c.Flags().BoolVar(&o.follow, "follow", false, "go on until the cell has ended")
	c.Flags().BoolVar(&o.raw, "raw", false, "control characters as they are, also on a terminal")
	completeFields(c, members(reflect.TypeFor[outputRange]()))
	c.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case o.offset < 0 || o.limit < 0:
			return fault.New(fault.Usage, "read arguments", "", "--offset and --limit are not negative")
		case o.follow && (a.machine() || len(a.set.fields) > 0):
			return fault.New(fault.Usage, "read arguments", "--follow", "it prints bytes, not JSON").
				WithNext("follow the events of a cell with reeve events --follow --jsonl")
		}
		return nil
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		return a.printOutput(ctx, c, args[0], o)
	}))
}

func (a *app) printOutput(ctx context.Context, c control.Service, cell string, o cellOutput) answer {
	if a.machine() || len(a.set.fields) > 0 {
		return outputAnswer(ctx, c, cell, o)
	}
	for {
		// The state is read first: what is printed after the last look is then in it.
		ended := true
		if o.follow {
			d, err := c.Cell(ctx, cell)
			if err != nil {
				return failed(err)
			}
			ended = d.Result.Status != "running" && d.Result.Status != "queued"
		}
		n, err := a.copyOutput(ctx, c, cell, o)
		o.offset += n
		if err == nil && ended && o.limit == 0 {
			err = a.copyLate(ctx, c, cell, o)
		}
		if err != nil || ended {
			return failed(err)
		}
		t := time.NewTimer(followEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return failed(ctx.Err())
		case <-t.C:
		}
	}
}

// copyOutput prints from o.offset on and returns by how much the offset moved.
func (a *app) copyOutput(ctx context.Context, c control.Service, cell string, o cellOutput) (moved int64, err error) {
	r, err := c.Output(ctx, cell, o.offset)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Body.Close()) }()
	if r.Offset > o.offset {
		a.note("bytes %d to %d are not kept", o.offset, r.Offset)
	}
	body := io.Reader(r.Body)
	if o.limit > 0 {
		body = io.LimitReader(body, o.limit)
	}
	var n int64
	if a.io.OutTTY && !o.raw {
		n, err = copyInert(a.io.Out, body)
	} else {
		n, err = io.Copy(a.io.Out, body)
	}
	if err != nil {
		return n, fault.Wrap(err, fault.Unavailable, "read output", cell)
	}
	moved = r.Offset - o.offset + n
	if r.Gap != nil && moved+o.offset > r.Gap.From {
		a.note("bytes %d to %d were dropped between the two parts that are kept", r.Gap.From, r.Gap.To)
		moved += r.Gap.To - r.Gap.From
	}
	return moved, nil
}

// copyLate prints what the cell printed after its end; o.offset is where that was.
func (a *app) copyLate(ctx context.Context, c control.Service, cell string, o cellOutput) error {
	d, err := c.Cell(ctx, cell)
	if err != nil || d.Late == "" {
		return err
	}
	a.note("what comes after byte %d was printed when the cell had ended", o.offset)
	if a.io.OutTTY && !o.raw {
		_, err = io.WriteString(a.io.Out, inert(d.Late))
	} else {
		_, err = io.WriteString(a.io.Out, d.Late)
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "read output", cell)
	}
	return nil
}

// copyInert copies with control characters made visible. Characters may be split by
// a read, so the end of a piece waits for the next one.
func copyInert(w io.Writer, r io.Reader) (int64, error) {
	var n int64
	buf, held := make([]byte, 32<<10), 0
	for {
		k, err := r.Read(buf[held:])
		n += int64(k)
		whole := held + k
		keep := 0
		for keep < min(utf8.UTFMax-1, whole) && err == nil && !utf8.Valid(buf[:whole-keep]) {
			keep++
		}
		if _, werr := io.WriteString(w, inert(string(buf[:whole-keep]))); werr != nil {
			return n, werr
		}
		held = copy(buf, buf[whole-keep:whole])
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func outputAnswer(ctx context.Context, c control.Service, cell string, o cellOutput) answer {
	d, err := c.Cell(ctx, cell)
	if err != nil {
		return failed(err)
	}
	cell = d.Result.Cell // whole
	r, err := c.Output(ctx, cell, o.offset)
	if err != nil {
		return failed(err)
	}
	body := io.Reader(r.Body)
	if o.limit > 0 {
		body = io.LimitReader(body, o.limit)
	}
	b, err := io.ReadAll(body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return failed(fault.Wrap(err, fault.Unavailable, "read output", cell))
	}
	out := outputRange{Cell: cell, Offset: r.Offset, Bytes: int64(len(b)), Total: r.Total, Gap: r.Gap, Late: d.Late}
	if utf8.Valid(b) {
		s := string(b)
		out.Text = &s
	} else {
		s := base64.StdEncoding.EncodeToString(b)
		out.Base64 = &s
	}
	return answer{kind: "output", data: out, ids: map[string]string{"cell": cell}}
}
