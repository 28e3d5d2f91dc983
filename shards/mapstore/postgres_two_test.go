package mapstore_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// Two servers take writes, as after a promotion while the old primary lives. All stores write to the one that was
// promoted last, in whichever order they name the addresses, and none writes to the old one after it has seen the new
// one.
func TestPostgresTwoPrimaries(t *testing.T) {
	t.Parallel()
	old := shardtest.OwnServer(t)
	next := shardtest.Standby(t, old, "standby")
	open := func(first, second string) mapstore.Store {
		a, err := url.Parse(first)
		noError(t, err)
		b, err := url.Parse(second)
		noError(t, err)
		return openPostgres(t, strings.Replace(first, "@"+a.Host+"/", "@"+a.Host+","+b.Host+"/", 1))
	}
	dsn, other := old.DSN("postgres"), next.DSN("postgres")
	one, two := open(dsn, other), open(other, dsn)
	swap(t, one, 0, 1)
	swap(t, two, 1, 2)
	eventually(t, "the standby to have version 2", func() bool { return queryOne[int](t, other, "select max(version) from kiloshard.maps") == 2 })
	if !queryOne[bool](t, other, "select pg_promote()") {
		t.Fatal("the standby was not promoted")
	}
	swap(t, one, 2, 3)
	_, err := two.Swap(newContext(t), 2, newChange(30))
	_ = checkAs[*mapstore.ConflictError](t, err)
	checkEntry(t, load(t, two), 3, 3)
	if version := queryOne[int](t, dsn, "select max(version) from kiloshard.maps"); version != 2 {
		t.Errorf("the old primary has version %d, want 2", version)
	}
	if err := next.Kill(newContext(t)); err != nil {
		t.Fatal(err)
	}
	_, err = one.Swap(newContext(t), 3, newChange(4))
	e := checkAs[*connect.OlderPrimaryError](t, err)
	if a, b := dsn, other; !strings.Contains(a, e.Address) || !strings.Contains(b, e.Newer) {
		t.Errorf("got %v", err)
	}
}
