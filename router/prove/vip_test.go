package prove_test

import (
	"errors"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
)

// virtualIP is an address that leads to one server after another. Connections stay where they were made to.
type virtualIP struct {
	*localpg.Relay
	to atomic.Pointer[string]
}

func startVirtualIP(t *testing.T, to *localpg.Server) *virtualIP {
	t.Helper()
	v := &virtualIP{}
	v.move(t, to)
	var err error
	if v.Relay, err = localpg.StartRelay(func() string { return *v.to.Load() }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Stop)
	return v
}

func (v *virtualIP) move(t *testing.T, to *localpg.Server) {
	t.Helper()
	target := address(t, to)
	v.to.Store(&target)
}

// dsn returns the server's DSN with this address.
func (v *virtualIP) dsn(t *testing.T, s *localpg.Server) string {
	t.Helper()
	u, err := url.Parse(s.DSN(database))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	u.Host = v.Address()
	return u.String()
}

// TestVirtualIP moves the only address of a host from its primary, which takes no more writes, to a promoted standby. The
// connections to the old one stay open. The first write that is refused there has them closed, and is made at the new
// primary; so does the first transaction, which fails.
func TestVirtualIP(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(s router.Shard) error{
		"a write": func(s router.Shard) error { return write(t.Context(), s, 2) },
		"a transaction": func(s router.Shard) error {
			insertInTx := func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), insert, 2, ""); return err }
			var err error
			eventually(t, "a transaction succeeds", func() bool {
				err = s.Tx(t.Context(), pgx.TxOptions{}, insertInTx)
				return sqlState(err) != "25006" && !errors.Is(err, router.ErrLost)
			})
			return err
		},
	} {
		p := startPair(t)
		vip := startVirtualIP(t, p.primary)
		r := open(t, router.Config{}, vip.dsn(t, p.primary))
		s := shard(t, r, 1)
		if err := write(t.Context(), s, 1); err != nil {
			t.Fatal(err)
		}
		old, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := read(t.Context(), s); err != nil { // on another connection
			t.Fatal(err)
		}
		promote(t, p.standby)
		do(t, p.primary.DSN(database), `alter system set default_transaction_read_only = on`)
		do(t, p.primary.DSN(database), `select pg_reload_conf()`)
		eventually(t, "the old primary takes no writes", func() bool {
			return ask[string](t, p.primary.DSN(database), `show default_transaction_read_only`) == "on"
		})
		vip.move(t, p.standby)
		if err := first(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := ask[int](t, p.standby.DSN(database), `select count(*) from shard_00001.ledger where id = 2`); got != 1 {
			t.Errorf("%s: %d rows at the new primary", name, got)
		}
		if _, err := old.Exec(t.Context(), `select 1`); err == nil {
			t.Errorf("%s: a transaction goes on at the old primary", name)
		}
		_ = old.Rollback(t.Context())
		r.Close()
	}
}

// TestReadOnlyHost has a host with one address take no writes at all. They fail, and no connection is closed.
func TestReadOnlyHost(t *testing.T) {
	t.Parallel()
	server := start(t)
	do(t, server.DSN(database), `alter database app set default_transaction_read_only = on`)
	r := open(t, router.Config{}, server.DSN(database))
	s := shard(t, r, 1)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(20) {
		if err := write(t.Context(), s, id+1); sqlState(err) != "25006" {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := tx.Exec(t.Context(), `select 1`); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}
