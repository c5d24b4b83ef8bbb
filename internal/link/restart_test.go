package link_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
)

// Cores are stopped and started under many callers. Nobody is told anything untrue: a
// request that was answered has been carried out, once; one that was refused has
// not; and a core that stops in order leaves none in doubt.
func TestOutcomesAreExactWhileCoresComeAndGo(t *testing.T) {
	t.Attr("requirement", "VD-148 VD-010")
	t.Parallel()
	path := socket(t)
	var done sync.Map // request id → times
	handler := func(_ context.Context, c link.Call) ([]byte, error) {
		n, _ := done.LoadOrStore(c.RequestID, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		return c.Body, nil
	}
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	over := make(chan struct{})
	var callers sync.WaitGroup
	var answered, refused atomic.Int64
	for who := range 8 {
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", who, n)
				_, err := c.Call(t.Context(), link.Request{Method: "m", Body: []byte(`1`), RequestID: id})
				times := int64(0)
				if v, ok := done.Load(id); ok {
					times = v.(*atomic.Int64).Load()
				}
				switch {
				case err == nil && times == 1:
					answered.Add(1)
				case fault.HasCode(err, fault.Unavailable) && times == 0:
					refused.Add(1)
					time.Sleep(100 * time.Microsecond) // a core that is away is not asked in a tight loop
				default:
					t.Errorf("%s was carried out %d times: %v", id, times, err)
				}
			}
		})
	}
	for range 30 {
		before := answered.Load()
		stop := serve(t, path, link.ServerOptions{Handler: handler})
		for answered.Load() < before+50 && !t.Failed() {
			time.Sleep(100 * time.Microsecond)
		}
		stop()
		_ = os.Remove(path)
	}
	close(over)
	callers.Wait()
	if answered.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d answered, %d refused: nothing was shown", answered.Load(), refused.Load())
	}
}
