package supervise_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/reeve-run/reeve/fault"
)

// TestSpoolRoundsTheRing reads spools of every shape the layout has: shorter than
// the head, up to the ring, once and several times around it.
func TestSpoolRoundsTheRing(t *testing.T) {
	t.Attr("requirement", "CP-141")
	t.Parallel()
	const part = 8 << 20
	sp, _ := hostile(t, "")
	p := start(t, sp)
	for n, total := range []int64{0, 1, 40_000, part - 1, part, part + 1, 2*part - 1, 2 * part, 2*part + 1, 3*part + 12_345} {
		id := fmt.Sprintf("e-%d", n)
		c, err := p.Execute(t.Context(), id, fmt.Sprintf("spool %d", total))
		if err != nil || c.Spool == nil {
			t.Fatalf("%d bytes: %+v, %v, %v", total, c, err, c.SpoolErr)
		}
		body, err := io.ReadAll(c.Spool.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Spool.Body.Close(); err != nil {
			t.Error(err)
		}
		from, to := total, total
		if total > 2*part {
			from, to = part, total-part
		}
		if c.Spool.Total != total || c.Spool.DropFrom != from || c.Spool.DropTo != to {
			t.Errorf("%d bytes: total %d, dropped [%d, %d)", total, c.Spool.Total, c.Spool.DropFrom, c.Spool.DropTo)
		}
		want := append(pattern(0, from), pattern(to, total)...)
		if !bytes.Equal(body, want) {
			t.Errorf("%d bytes: the %d read are not those kept", total, len(body))
		}
	}
}

// pattern is the bytes [from, to) of an output whose byte n is n modulo 251.
func pattern(from, to int64) []byte {
	period := make([]byte, 251)
	for i := range period {
		period[i] = byte(i)
	}
	return bytes.Repeat(period, int(to/251)+1)[from:to]
}

// TestSpoolDamage: a file that is no spool is not read as one, and the cell's result
// is delivered all the same.
func TestSpoolDamage(t *testing.T) {
	t.Attr("requirement", "CP-141")
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	for _, damage := range []string{"magic", "short", "header", "link"} {
		c, err := p.Execute(t.Context(), "e-"+damage, "spool 50000 "+damage)
		if err != nil || c.Cell == nil || c.Spool != nil || fault.CodeOf(c.SpoolErr) != fault.Internal {
			t.Errorf("%s: %+v, spool %v, spool error %v, %v", damage, c.Cell, c.Spool, c.SpoolErr, err)
		}
	}
}
