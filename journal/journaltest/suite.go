package journaltest

import (
	"testing"
	"time"

	"github.com/reeve-run/reeve/journal"
)

// Engine is what the suite needs of a store.
type Engine interface {
	journal.Store
	journal.Leaser
	journal.Informer
}

// Clock is what an engine asks for the time.
type Clock func() time.Time

// Run holds an engine to the semantics of journal.Store. open returns a fresh,
// empty store that takes the time for leases from now; the suite closes it.
//
// What a store owes to the whole system, whatever the engine: an acknowledged event
// is there, in order and chained; a refused one is not; a receipt is written once,
// however often its batch is sent; epochs only rise, and no commit carries an old
// one; no session waits while input it has not seen is there. That this survives a
// crash is for the engine's own tests: memory does not.
func Run(t *testing.T, open func(t testing.TB, now Clock) Engine) {
	t.Helper()
	s := suite{open}
	for _, c := range []struct {
		name string
		test func(*testing.T, suite)
	}{
		{"append and read back", testAppendRead},
		{"chain", testChain},
		{"heads are compared", testHeads},
		{"conditions", testConditions},
		{"verified while written", testVerifyLive},
		{"all or nothing", testAllOrNothing},
		{"backward", testBackward},
		{"records", testRecords},
		{"pages of records", testRecordPages},
		{"inbox", testInbox},
		{"wait unless input", testWaitUnlessInput},
		{"replay", testReplay},
		{"reused id", testReusedID},
		{"any head", testAnyHead},
		{"any head replayed", testAnyHeadReplay},
		{"any head identified by a record", testAnyHeadRecord},
		{"any head by many", testAnyHeadMany},
		{"leases", testLeases},
		{"lease expiry", testLeaseExpiry},
		{"epoch fences", testFencing},
		{"bad batches", testBadBatches},
		{"hostile names", testHostileNames},
		{"big batch", testBigBatch},
		{"caller keeps its buffers", testOwnership},
		{"concurrent writers", testConcurrentWriters},
		{"cancelled context", testCancelled},
		{"closed", testClosed},
		{"info", testInfo},
		{"lost answers", testLostAnswers},
		{"state machine", testStateMachine},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, s)
		})
	}
}

type suite struct {
	open func(t testing.TB, now Clock) Engine
}

// fresh opens a store that ends with the test.
func (s suite) fresh(t testing.TB) Engine { return s.freshAt(t, time.Now) }

func (s suite) freshAt(t testing.TB, now Clock) Engine {
	t.Helper()
	e := s.open(t, now)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}
