package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// template is the databases that are cloned for every turn.
type template struct {
	m        *shards.Map
	controls []shards.Host // databases of the same servers, for the statements that clone and drop
	clones   int           // number of times that all were cloned
}

func newTemplate(ctx context.Context, cfg Config) (*template, error) {
	hosts, err := cfg.NewHosts(ctx)
	if err != nil {
		return nil, err
	}
	t := &template{}
	if t.m, err = server.Config(cfg.Shards, hosts).Map(); err != nil {
		return nil, err
	}
	if t.controls, err = cfg.NewHosts(ctx); err != nil {
		return nil, err
	}
	if _, err = provision.Create(ctx, provision.CreateConfig{Map: t.m}); err != nil {
		return nil, err
	}
	return t, inLoops(ctx, t.m, t.m.All(), 1, versionTable)
}

// clone returns the map of new clones of the databases. The second result drops them.
func (t *template) clone(ctx context.Context) (*shards.Map, func() error, error) {
	t.clones++
	hosts := slices.Clone(t.m.Hosts())
	bases, clones := make([]string, len(hosts)), make([]string, len(hosts)) // names of databases, as identifiers
	for i, host := range hosts {
		cfg, err := pgx.ParseConfig(host.ConnString())
		if err != nil {
			return nil, nil, shards.ErrBadDSN
		}
		name := fmt.Sprintf("%s_turn_%d", cfg.Database, t.clones)
		bases[i], clones[i] = pgx.Identifier{cfg.Database}.Sanitize(), pgx.Identifier{name}.Sanitize()
		hosts[i].DSN = network.Redirect(host.ConnString(), "", name)
	}
	drop := func() error {
		ctx := context.WithoutCancel(ctx)
		return harness.Together(len(clones), func(i int) error {
			return server.Exec(ctx, t.controls[i], "drop database if exists "+clones[i]+" with (force)")
		})
	}
	m, err := server.On(t.m, hosts)
	if err == nil {
		err = harness.Together(len(clones), func(i int) error {
			create := fmt.Sprintf("create database %s template %s", clones[i], bases[i])
			return errors.Join(server.Exec(ctx, t.controls[i], create), server.Checkpoint(ctx, t.controls[i]))
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, drop())
	}
	return m, drop, nil
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
