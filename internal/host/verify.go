package host

import (
	"context"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

func (c *Core) Verify(ctx context.Context) (control.VerifyReport, error) {
	return control.VerifyReport{}, fault.New(fault.Unavailable, "verify", "", "not built yet")
}
func (c *Core) Anchor(ctx context.Context) (control.AnchorReport, error) {
	return control.AnchorReport{}, fault.New(fault.Unavailable, "anchor", "", "not built yet")
}
