package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// hosts are the Postgres servers: pg-a, which also has the map, and pg-b, which is killed.
type hosts struct {
	a, b    *localpg.Server
	standby *localpg.Server // of b, nil if there can be none

	// Of the databases of photos on a, b, and the standby if there is one.
	configA, configB, configStandby *pgx.ConnConfig
	epoch                           time.Time
}

const (
	database        = "photos"
	controlDatabase = "control" // of the map, on a
)

// startHosts starts the servers. After an error none is left.
func startHosts(ctx context.Context) (_ *hosts, err error) {
	h := &hosts{epoch: time.Now().UTC().AddDate(0, -6, 0).Truncate(24 * time.Hour)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.stop(context.WithoutCancel(ctx)))
		}
	}()
	var wait sync.WaitGroup
	var errA, errB error
	wait.Go(func() { h.a, errA = localpg.Start(ctx, localpg.Config{}) })
	wait.Go(func() { h.b, errB = localpg.Start(ctx, localpg.Config{}) })
	wait.Wait()
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	if _, err := h.a.CreateDatabase(ctx, controlDatabase); err != nil {
		return nil, err
	}
	if h.configA, err = newDatabase(ctx, h.a); err != nil {
		return nil, err
	}
	if h.configB, err = newDatabase(ctx, h.b); err != nil {
		return nil, err
	}
	return h, h.startStandby(ctx)
}

func newDatabase(ctx context.Context, s *localpg.Server) (*pgx.ConnConfig, error) {
	dsn, err := s.CreateDatabase(ctx, database)
	if err != nil {
		return nil, err
	}
	return pgx.ParseConfig(dsn)
}

// startStandby gives b a standby, without which no commit is acknowledged from then on.
func (h *hosts) startStandby(ctx context.Context) error {
	backup, err := h.b.Backup(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	if h.standby, err = backup.Standby(ctx, "standby", nil); err != nil {
		return err
	}
	config, err := pgx.ParseConfig(h.standby.DSN(database))
	if err != nil {
		return err
	}
	h.configStandby = config
	conn, err := pgx.ConnectConfig(ctx, h.configB.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{"alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for {
		const query = "select exists (select from pg_stat_replication where sync_state = 'sync')"
		var synchronous bool
		if err := conn.QueryRow(ctx, query).Scan(&synchronous); err != nil || synchronous {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// failOver kills b with SIGKILL and makes its standby the primary. Without a standby, b is started again.
func (h *hosts) failOver(ctx context.Context) error {
	if err := h.b.Kill(ctx); err != nil {
		return err
	}
	if h.standby == nil {
		return h.b.Restart(ctx)
	}
	conn, err := pgx.Connect(ctx, h.standby.DSN(database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var promoted bool
	if err := conn.QueryRow(ctx, "select pg_promote()").Scan(&promoted); err != nil {
		return err
	}
	if !promoted {
		return errors.New("the standby was not promoted in a minute")
	}
	return nil
}

// primaries returns how to reach the hosts, after the standby has taken the place of b.
func (h *hosts) primaries() map[string]*pgx.ConnConfig {
	b := h.configB
	if h.standby != nil {
		b = h.configStandby
	}
	return map[string]*pgx.ConnConfig{"pg-a": h.configA, "pg-b": b}
}

// environment returns the variables that the config and the map name.
func (h *hosts) environment() []string {
	return []string{"PG_A_PASSWORD=" + h.configA.Password, "PG_B_PASSWORD=" + h.configB.Password}
}

// stop ends all servers and removes what they have.
func (h *hosts) stop(ctx context.Context) error {
	var errs []error
	for _, s := range []*localpg.Server{h.a, h.b, h.standby} {
		if s != nil {
			errs = append(errs, s.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// dsnA and the others return DSNs as they stand in files, which hold no password.
func (h *hosts) dsnA(name string) string { return dsn(h.configA, "PG_A_PASSWORD", name, "") }

func (h *hosts) dsnB() string { return dsn(h.configB, "PG_B_PASSWORD", database, "") }

// dsnBoth names b and its standby, of which the router takes whichever is the primary.
func (h *hosts) dsnBoth() string {
	if h.standby == nil {
		return h.dsnB()
	}
	return dsn(h.configB, "PG_B_PASSWORD", database, fmt.Sprintf(",127.0.0.1:%d", h.configStandby.Port))
}

func dsn(c *pgx.ConnConfig, variable, name, more string) string {
	return fmt.Sprintf("postgres://%s:${%s}@%s:%d%s/%s?sslmode=disable", c.User, variable, c.Host, c.Port, more, name)
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
