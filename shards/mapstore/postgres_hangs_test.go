package mapstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// The first of two addresses takes connections and says nothing. The second one answers before the first has had its time, which is some minutes.
func TestPostgresFirstAddressHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	own := newDatabase(t, server)
	parsed, err := dsn.Parse(own)
	noError(t, err)
	host, port, err := net.SplitHostPort(silent.Addr().String())
	noError(t, err)
	two := dsn.With(own, "host", host+","+parsed.Get("host"), "port", port+","+parsed.Get("port"), "connect_timeout", "600")
	if !strings.Contains(two, port) {
		t.Fatal("the DSN names one address")
	}
	store := openPostgres(t, two, func(o *mapstore.Options) { o.Limit = 20 * time.Minute })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for version := range 2 {
		_, err = store.Swap(ctx, version, newChange(version+1))
		noError(t, err)
		e, err := store.Load(ctx)
		noError(t, err)
		checkEntry(t, e, version+1, version+1)
	}
	for e, err := range store.Watch(ctx, 0) {
		noError(t, err)
		checkEntry(t, e, 2, 2)
		break
	}
}
