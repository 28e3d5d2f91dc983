package provision

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// onHosts runs fn on every host at once, each with a session of its own, and joins the errors as
// [shards.HostError]. When a host does not answer, fn runs on none.
func onHosts(ctx context.Context, hosts []shards.Host, fn func(ctx context.Context, i int, conn *pgx.Conn) error) error {
	conns := make([]*pgx.Conn, len(hosts))
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close(closing) // nothing is left to lose in it
			}
		}
	}()
	err := each(hosts, func(i int) (err error) {
		conns[i], err = open(ctx, hosts[i])
		return err
	})
	if err != nil {
		return err
	}
	return each(hosts, func(i int) error { return fn(ctx, i, conns[i]) })
}

// each runs fn for every host at once and joins the errors.
func each(hosts []shards.Host, fn func(i int) error) error {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			if err := fn(i); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// takeAll looks at what every host of the map holds.
func takeAll(ctx context.Context, m *shards.Map, detailed bool) ([]*inventory, error) {
	inventories := make([]*inventory, len(m.Hosts()))
	err := onHosts(ctx, m.Hosts(), func(ctx context.Context, i int, conn *pgx.Conn) (err error) {
		inventories[i], err = take(ctx, conn, m, m.Hosts()[i], detailed)
		return err
	})
	if err != nil {
		return nil, err
	}
	return inventories, sameDatabase(inventories)
}

// sameDatabase returns an error when two hosts are one database.
func sameDatabase(inventories []*inventory) error {
	seen := map[string]string{}
	for _, inv := range inventories {
		if other, ok := seen[inv.database]; ok {
			return &shards.FieldError{Field: "hosts", Found: "hosts " + other + " and " + inv.host.Name + " are one and the same database", Expected: "a database of its own for each host"}
		}
		seen[inv.database] = inv.host.Name
	}
	return nil
}
