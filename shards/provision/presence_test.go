package provision_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

func TestPresent(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	a, b := m.Hosts()[0], m.Hosts()[1]
	on(t, a, "drop schema shard_00003 cascade")
	on(t, a, "alter schema shard_00004 rename to shard_00004__moved_1")
	on(t, a, "drop sequence shard_00005.next_id_seq cascade")
	on(t, b, "create schema shard_00001")
	on(t, b, "create schema shard_00099") // of no shard of the map
	found, err := provision.Present(t.Context(), m, []shards.Host{b, a})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ host, whole, partly string }{{b.Name, "8-15", "1"}, {a.Name, "0-2,6-7", "5"}} {
		if got := found[i]; got.Host.Name != want.host || got.Whole.String() != want.whole || got.Partly.String() != want.partly {
			t.Errorf("got %s: %s, partly %s, expected %+v", got.Host.Name, got.Whole, got.Partly, want)
		}
	}
	b.DSN = "postgres://app:s3cr3t-pa55@127.0.0.1:1/app"
	var hostError *shards.HostError
	if found, err := provision.Present(t.Context(), m, []shards.Host{a, b}); !errors.As(err, &hostError) || hostError.Host != b.Name || found != nil {
		t.Errorf("of a host that is down: %v, %v", found, err)
	}
}
