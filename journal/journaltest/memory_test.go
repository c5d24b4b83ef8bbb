package journaltest_test

import (
	"testing"

	"github.com/reeve-run/reeve/journal/journaltest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(_ testing.TB, now journaltest.Clock) journaltest.Engine {
		return journaltest.NewMemory(now)
	})
}
