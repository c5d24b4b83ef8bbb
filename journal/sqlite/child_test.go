package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/internal/anchor"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// child is a process that writes to a store until it is killed.
type child struct {
	cmd    *exec.Cmd
	out    *bufio.Scanner
	stderr strings.Builder
	acked  map[string]int64 // per stream, the highest sequence acknowledged
	count  map[string]int   // of lines, by their first word
}

// childLife ends a child that will not do what a test waits for.
const childLife = 2 * time.Minute

func startChild(t *testing.T, path string, env ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), childLife)
	t.Cleanup(cancel)
	c := &child{cmd: exec.CommandContext(ctx, exe), acked: map[string]int64{}, count: map[string]int{}}
	c.cmd.Env = append(append(os.Environ(), childPath+"="+path), env...)
	c.cmd.Stderr = &c.stderr
	if _, err := c.cmd.StdinPipe(); err != nil { // held open for as long as this process lives
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // usually gone already
		_ = c.cmd.Wait()
	})
	return c
}

// read takes the next line; false at the end of the output.
func (c *child) read(t *testing.T) bool {
	t.Helper()
	if !c.out.Scan() {
		return false
	}
	var word, stream string
	var seq int64
	if _, err := fmt.Sscan(c.out.Text(), &word, &stream, &seq); err != nil {
		// The kill may cut the last line.
		if c.out.Scan() {
			t.Fatalf("child wrote %q, then more: %v", c.out.Text(), err)
		}
		return false
	}
	c.count[word]++
	if word == "ack" {
		c.acked[stream] = max(c.acked[stream], seq)
	}
	return true
}

// until reads lines until n begin with word.
func (c *child) until(t *testing.T, word string, n int) {
	t.Helper()
	for c.count[word] < n {
		if !c.read(t) {
			t.Fatalf("child ended: %v, %s", c.cmd.Wait(), c.stderr.String())
		}
	}
}

// rest reads what was printed before the end.
func (c *child) rest(t *testing.T) {
	t.Helper()
	for c.read(t) {
		continue
	}
	if err := c.out.Err(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the child and reads what it still had printed.
func (c *child) kill(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Kill() // it may have ended by itself
	c.rest(t)
	_ = c.cmd.Wait() // it was killed: the status says nothing
}

// lost returns how many acknowledged sequences are missing in the store, and fails
// the test when what is there is not what the child writes, or not a whole number
// of its batches with their records.
func lost(t *testing.T, s *sqlite.Store, acked map[string]int64) int64 {
	t.Helper()
	if r := anchor.In(t.TempDir()).Verify(t.Context(), s, ""); r.Code() != "" {
		t.Errorf("verify: %+v", r)
	}
	missing := int64(0)
	for w := range childWriters {
		stream := fmt.Sprintf("stream/%d", w)
		seq := int64(0)
		for e, err := range journal.Stream(t.Context(), s, stream, 0) {
			if err != nil {
				t.Fatal(err)
			}
			b := childBatch(stream, seq/2*2)
			want := b.Append[0].Events[seq%2]
			if seq++; e.Seq != seq || e.Batch != b.ID || !journal.Same(&e, &want) {
				t.Fatalf("%s: event %+v at %d, want %+v of batch %s", stream, e, seq, want, b.ID)
			}
		}
		records := int64(0)
		for _, err := range journal.Records(t.Context(), s, journal.Query{Kind: "done", Session: stream}) {
			if err != nil {
				t.Fatal(err)
			}
			records++
		}
		if seq%2 != 0 || records != seq/2 {
			t.Errorf("%s holds %d events and %d records: half a batch", stream, seq, records)
		}
		missing += max(0, acked[stream]-seq)
	}
	return missing
}
