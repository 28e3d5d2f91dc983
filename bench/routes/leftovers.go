package routes

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/shards"
)

// leftLimit limits how long sessions may remain after Close, until they notice that the client is gone.
const leftLimit = time.Minute

// sessions returns how many sessions with an application_name the hosts have.
func sessions(ctx context.Context, m *shards.Map, name string) (all int, err error) {
	for _, host := range m.Hosts() {
		conn, err := server.Connect(ctx, host)
		if err != nil {
			return 0, err
		}
		n := 0
		const query = "select count(*) from pg_stat_activity where datname = current_database() and application_name = $1"
		err = conn.QueryRow(ctx, query, name).Scan(&n)
		server.Close(conn)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// until waits for a condition, at most leftLimit.
func until(ctx context.Context, condition func() (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, leftLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := condition()
		if done || err != nil {
			return err
		}
		select {
		case <-limited.Done():
			return ctx.Err() // nil after leftLimit
		case <-tick.C:
		}
	}
}
