package host

import (
	"context"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/journal"
)

func (c *Core) Verify(ctx context.Context) (control.VerifyReport, error) {
	return control.VerifyReport{}, fault.New(fault.Unavailable, "verify", "", "not built yet")
}
func (c *Core) Anchor(ctx context.Context) (control.AnchorReport, error) {
	return control.AnchorReport{}, fault.New(fault.Unavailable, "anchor", "", "not built yet")
}
func openStore(ctx context.Context, path string) (journal.Store, error) {
	return nil, fault.New(fault.Unavailable, "open store", path, "not built yet")
}
