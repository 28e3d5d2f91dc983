// Package server is what benchmarks do on their hosts.
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
	// Epoch is that of all benchmarks.
	Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Layout is that of all benchmarks.
	Layout = shards.DefaultLayout
)

// PhotosTable creates the table that benchmarks of shards read and write.
const PhotosTable = "create table photos (id bigint primary key, owner bigint not null, title text not null)"

// Open opens sessions whose commits do not wait for the disk.
func Open(ctx context.Context, host shards.Host, n int) ([]*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(host.ConnString())
	if err != nil {
		return nil, shards.ErrBadDSN
	}
	cfg.RuntimeParams["synchronous_commit"] = "off"
	var conns []*pgx.Conn
	for range n {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			Close(conns)
			return nil, fmt.Errorf("session %d of %d: %w", len(conns)+1, n, err)
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

// Close closes sessions.
func Close(conns []*pgx.Conn) {
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

// Checkpoint runs a checkpoint, so that every turn begins right after one, if the user is allowed to.
func Checkpoint(ctx context.Context, host shards.Host) error {
	err := Exec(ctx, host, "checkpoint")
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" { // insufficient_privilege
		return nil
	}
	return err
}

// On returns the map with other hosts of the same names.
func On(m *shards.Map, hosts []shards.Host) (*shards.Map, error) {
	cfg := m.Config()
	cfg.Hosts = hosts
	return cfg.Map()
}

// Version returns the version of a host's Postgres.
func Version(ctx context.Context, host shards.Host) (version string, err error) {
	conn, err := pgx.Connect(ctx, host.ConnString())
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&version)
	return version, errors.Join(err, conn.Close(ctx))
}
