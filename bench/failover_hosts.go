package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// failoverShards is how many shards each of the two hosts has.
const failoverShards = 8

const failoverDatabase = "kiloshard_bench_failover"

// ledgers creates the shards' tables, without a unique constraint, so that a row written twice is visible.
var ledgers = fmt.Sprintf(`DO $loop$ BEGIN
	FOR n IN 0 .. %d LOOP
		EXECUTE format('CREATE SCHEMA %%1$I; CREATE TABLE %%1$I.ledger (id bigint NOT NULL); CREATE INDEX ON %%1$I.ledger (id); '
			'INSERT INTO %%1$I.ledger VALUES (0)', 'shard_' || lpad(n::text, 5, '0'));
	END LOOP;
END $loop$`, 2*failoverShards-1)

// startServer starts a server with the tables of ledgers.
func (b *failoverBench) startServer(ctx context.Context) (*localpg.Server, error) {
	s, err := localpg.Start(ctx, b.cfg.Servers)
	if err != nil {
		return nil, err
	}
	dsn, err := s.CreateDatabase(ctx, failoverDatabase)
	if err == nil {
		err = execOn(ctx, shards.Host{Name: "new server", DSN: dsn}, ledgers)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	b.report.Server = s.Version()
	return s, nil
}

// startStandby starts a synchronous standby of a server and waits until commits wait for it.
func startStandby(ctx context.Context, primary *localpg.Server) (*localpg.Server, error) {
	backup, err := primary.Backup(ctx)
	if err != nil {
		return nil, err
	}
	standby, err := backup.Standby(ctx, "standby", nil)
	if err != nil {
		return nil, err
	}
	host := shards.Host{Name: "primary", DSN: primary.DSN(failoverDatabase)}
	err = errors.Join(execOn(ctx, host, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`),
		execOn(ctx, host, `SELECT pg_reload_conf()`))
	const query = `SELECT exists (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`
	for synchronous := false; !synchronous && err == nil; {
		if err = pause(ctx, 10*time.Millisecond); err == nil {
			synchronous, err = askServer[bool](ctx, primary, query)
		}
	}
	if err != nil {
		return nil, errors.Join(err, standby.Stop(ctx))
	}
	return standby, nil
}

// askServer returns the only value that a query gives.
func askServer[T any](ctx context.Context, s *localpg.Server, query string, args ...any) (value T, err error) {
	conn, err := pgx.Connect(ctx, s.DSN(failoverDatabase))
	if err != nil {
		return value, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query, args...).Scan(&value)
	return value, err
}

// addressed returns one DSN with the addresses of all servers.
func addressed(servers ...*localpg.Server) (string, error) {
	var dsn *url.URL
	var hosts []string
	for _, s := range servers {
		u, err := url.Parse(s.DSN(failoverDatabase))
		if err != nil {
			return "", shards.ErrBadDSN
		}
		if dsn == nil {
			dsn = u
		}
		hosts = append(hosts, u.Host)
	}
	dsn.Host = strings.Join(hosts, ",")
	return dsn.String(), nil
}

// openFailover opens a router over two hosts.
func (b *failoverBench) openFailover(ctx context.Context, dsns ...string) (*router.Router, error) {
	cfg := shards.Config{Cluster: "bench", Shards: failoverShards * len(dsns), Epoch: epoch, Layout: layout}
	for i, dsn := range dsns {
		cfg.Hosts = append(cfg.Hosts, shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: dsn})
	}
	cfg.Placement = shards.Evenly(cfg.Shards, cfg.Hosts)
	m, err := cfg.Map()
	if err != nil {
		return nil, err
	}
	return router.New(ctx, router.Config{Map: m, Failover: router.Failover{FailAfter: b.cfg.FailAfter}})
}
