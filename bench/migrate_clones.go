package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// setUp creates the databases that are cloned for every turn.
func (b *migrateBench) setUp(ctx context.Context) (err error) {
	if b.base, err = newMap(ctx, CreateConfig{NewHosts: b.cfg.NewHosts, Shards: b.cfg.Shards}); err != nil {
		return err
	}
	if b.controls, err = b.cfg.NewHosts(ctx); err != nil {
		return err
	}
	if _, err = provision.Create(ctx, provision.CreateConfig{Map: b.base}); err != nil {
		return err
	}
	return inLoops(ctx, b.base, b.base.All(), 1, versionTable)
}

// clone returns the map of new clones of the databases. The second result drops them.
func (b *migrateBench) clone(ctx context.Context) (*shards.Map, func() error, error) {
	b.clones++
	hosts := slices.Clone(b.base.Hosts())
	names := make([]string, len(hosts))
	drop := func() error {
		ctx := context.WithoutCancel(ctx)
		return stats.Together(len(names), func(i int) error {
			return server.Exec(ctx, b.controls[i], "drop database if exists "+pgx.Identifier{names[i]}.Sanitize()+" with (force)")
		})
	}
	for i, host := range hosts {
		base, err := pgx.ParseConfig(host.ConnString())
		if err != nil {
			return nil, nil, shards.ErrBadDSN
		}
		names[i] = fmt.Sprintf("%s_turn_%d", base.Database, b.clones)
		hosts[i].DSN = network.Redirect(host.ConnString(), "", names[i])
	}
	err := stats.Together(len(names), func(i int) error {
		base, err := pgx.ParseConfig(b.base.Hosts()[i].ConnString())
		if err != nil {
			return err
		}
		create := fmt.Sprintf("create database %s template %s", pgx.Identifier{names[i]}.Sanitize(), pgx.Identifier{base.Database}.Sanitize())
		return errors.Join(server.Exec(ctx, b.controls[i], create), server.Checkpoint(ctx, b.controls[i]))
	})
	if err == nil {
		var m *shards.Map
		if m, err = server.On(b.base, hosts); err == nil {
			return m, drop, nil
		}
	}
	return nil, nil, errors.Join(err, drop())
}

// checkVersions returns an error unless the given number of shards is at version 1 and has the table with its two indexes,
// and the others are at 0.
func checkVersions(ctx context.Context, m *shards.Map, migrated int) error {
	status, err := migrate.Status(ctx, migrate.Config{Map: m, Files: migration})
	if err != nil {
		return err
	}
	if got, want := status.Pending().Len(), m.Len()-migrated; got != want {
		return fmt.Errorf("%d shards are not migrated, expected %d", got, want)
	}
	relations := 0
	for _, host := range m.Hosts() {
		conn, err := pgx.Connect(ctx, host.ConnString())
		if err != nil {
			return err
		}
		n := 0
		query := "select count(*) from pg_class where relname in ('photos', 'photos_pkey', 'photos_owner')"
		err = conn.QueryRow(ctx, query).Scan(&n)
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			return err
		}
		relations += n
	}
	if relations != 3*migrated {
		return fmt.Errorf("%d tables and indexes in %d shards, expected 3 in each", relations, migrated)
	}
	return nil
}
