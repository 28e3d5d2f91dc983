package migrate_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// cable is between a program and a server until it is cut: then both find their connections closed, as when the
// program is killed.
type cable struct {
	listener net.Listener
	server   string

	mu    sync.Mutex // guards conns
	conns []net.Conn // to the program and to the server
}

// lay returns the host as it is reached by a cable.
func lay(t *testing.T, host shards.Host) (shards.Host, *cable) {
	t.Helper()
	config, err := pgconn.ParseConfig(host.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	dsn, err := url.Parse(host.ConnString())
	if err != nil || network != "tcp" {
		t.Skip("the server's DSN is no URL with a TCP port")
	}
	c := &cable{server: address}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.serve(&wg) })
	t.Cleanup(func() {
		c.cut()
		wg.Wait()
	})
	dsn.Host = c.listener.Addr().String()
	return shards.Host{Name: host.Name, DSN: dsn.String()}, c
}

func (c *cable) serve(wg *sync.WaitGroup) {
	for {
		plug, err := c.listener.Accept()
		if err != nil {
			return
		}
		end, err := net.Dial("tcp", c.server)
		if err != nil {
			_ = plug.Close()
			continue
		}
		c.mu.Lock()
		c.conns = append(c.conns, plug, end)
		c.mu.Unlock()
		wg.Go(func() { _, _ = io.Copy(end, plug) })
		wg.Go(func() { _, _ = io.Copy(plug, end) })
	}
}

// cut cuts the cable, and nobody gets through any more.
func (c *cable) cut() {
	_ = c.listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// The server goes through with a statement, and enters it, for a program that is not there any more. Another run
// waits for that.
func TestProgramThatVanishesWhileAnIndexIsBuilt(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users)
	b.up()
	whole := b.m
	host, cable := lay(t, b.m.Host(0))
	cfg := b.m.Config()
	cfg.Hosts = []shards.Host{host}
	var err error
	if b.cfg.Map, err = cfg.Map(); err != nil {
		t.Fatal(err)
	}
	holder := b.connect(whole.Host(0))
	if _, err := holder.Exec(t.Context(), "begin; lock table shard_00000.users in row exclusive mode"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const building = "from pg_stat_activity where wait_event = 'virtualxid' and datname = current_database()"
	wg.Go(func() {
		waitFor(t, b, "select exists (select "+building+")")
		cable.cut()
	})
	b.cfg.Files = files("001_users.sql", users, "002_index.sql", disableTx+"create index concurrently users_lower on users (lower(name)); create table more ()")
	_, _ = b.upFails()
	wg.Wait()
	equal(t, "it is still at work", b.value(0, "select count(*) "+building), "1")

	b.cfg.Map = whole
	var told []string
	b.cfg.Events = resumed(&told)
	wg.Go(func() {
		waitFor(t, b, "select exists (select from pg_stat_activity where query like '%pg_try_advisory_lock(%' and pid <> pg_backend_pid() and datname = current_database())")
		if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
			t.Error(err)
		}
	})
	equal(t, "done", b.up().Done.String(), "0")
	wg.Wait()
	equal(t, "told", fmt.Sprint(told), "[pg-a 0 002_index.sql 2]")
	equal(t, "indexes", b.value(0, valid), "3 0")
	equal(t, "ledger", b.value(0, ledgerOf(0)), "up1, up2.1, up2.2, up2")
}
