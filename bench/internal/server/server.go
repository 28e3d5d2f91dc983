// Package server connects to the hosts of benchmarks and runs statements on them.
package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

var (
	// Epoch is the epoch of all benchmarks.
	Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Layout is the layout of all benchmarks.
	Layout = shards.DefaultLayout
)

// PhotosTable creates the table that benchmarks of shards read and write.
const PhotosTable = "create table photos (id bigint primary key, owner bigint not null, title text not null)"

// Config returns the config of a cluster whose shards are spread evenly over hosts.
func Config(count int, hosts []shards.Host) shards.Config {
	return shards.Config{
		Cluster: "bench", Shards: count, Epoch: Epoch, Layout: Layout, Hosts: hosts, Placement: shards.Evenly(count, hosts),
	}
}

// On returns the map with other hosts of the same names.
func On(m *shards.Map, hosts []shards.Host) (*shards.Map, error) {
	cfg := m.Config()
	cfg.Hosts = hosts
	return cfg.Map()
}

// Connect opens a session whose commits do not wait for the disk.
func Connect(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(host.ConnString())
	if err != nil {
		return nil, shards.ErrBadDSN
	}
	cfg.RuntimeParams["synchronous_commit"] = "off"
	return pgx.ConnectConfig(ctx, cfg)
}

// Open opens n sessions as [Connect] does.
func Open(ctx context.Context, host shards.Host, n int) ([]*pgx.Conn, error) {
	var conns []*pgx.Conn
	for range n {
		conn, err := Connect(ctx, host)
		if err != nil {
			Close(conns...)
			return nil, fmt.Errorf("session %d of %d: %w", len(conns)+1, n, err)
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

// Close closes sessions.
func Close(conns ...*pgx.Conn) {
	for _, conn := range conns {
		_ = conn.Close(context.Background())
	}
}

// Exec runs statements on a host, one after the other.
func Exec(ctx context.Context, host shards.Host, statements ...string) error {
	conn, err := pgx.Connect(ctx, host.ConnString())
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err = conn.Exec(ctx, statement); err != nil {
			break
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

// Checkpoint runs a checkpoint, so that every turn begins right after one. It does nothing if the user may not run one.
func Checkpoint(ctx context.Context, host shards.Host) error {
	err := Exec(ctx, host, "checkpoint")
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" { // insufficient_privilege
		return nil
	}
	return err
}

// Version returns the version of a host's Postgres, and its setting fsync.
func Version(ctx context.Context, host shards.Host) (version string, fsync bool, err error) {
	conn, err := pgx.Connect(ctx, host.ConnString())
	if err != nil {
		return "", false, err
	}
	const query = "SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('fsync')::bool"
	err = conn.QueryRow(ctx, query).Scan(&version, &fsync)
	return version, fsync, errors.Join(err, conn.Close(ctx))
}
