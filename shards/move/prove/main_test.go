package prove_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// toxiproxy leaves goroutines behind when a toxic is taken off a connection that is in use.
func TestMain(m *testing.M) {
	if os.Getenv(moverDies) != "" {
		mover()
	}
	os.Exit(leak.Check(shardtest.Run(m),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write")))
}
