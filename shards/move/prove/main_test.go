package prove_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
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

// full reports whether everything is to be tried, which takes some ten minutes, rather than one of each kind.
func full() bool { return os.Getenv("PROVE_FULL") == "1" }

// turns tells which cases of a list are to be tried: all in full, else every second one, by whether the version of Postgres is odd. In CI
// there are both.
func turns(t *testing.T) func(i int) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), shardtest.Hosts(t, 1)[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // it has been asked
	var version int
	if err := conn.QueryRow(t.Context(), `select current_setting('server_version_num')::int / 10000`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	return func(i int) bool { return full() || i%2 == version%2 }
}
