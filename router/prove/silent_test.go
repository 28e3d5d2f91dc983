package prove_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
)

// TestCloseWhenServersAreSilent has callers without any limit of time wait for a server that is not heard of any more, while its
// connections stay. Close ends, and with it their waiting.
func TestCloseWhenServersAreSilent(t *testing.T) {
	t.Parallel()
	server := start(t)
	proxy, dsn := startProxy(t, server)
	r := open(t, router.Config{Failover: router.Failover{FailAfter: time.Hour}}, dsn)
	s := shard(t, r, 1)
	eventually(t, "calls are answered", func() bool { return read(t.Context(), s) == nil })
	before := stats(r, 0).Calls
	for _, stream := range []string{"upstream", "downstream"} {
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(`{"type": "timeout", "stream": "` + stream + `"}`)); err != nil {
			t.Fatal(err)
		}
	}
	var callers sync.WaitGroup
	const count = 8
	for range count {
		callers.Go(func() {
			if err := read(context.Background(), s); err == nil {
				t.Error("an answer from nobody")
			}
		})
	}
	eventually(t, "all have called", func() bool { return stats(r, 0).Calls >= before+count })
	r.Close()
	callers.Wait()
}
