package provision

import (
	"context"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// HostStatus is how one host is doing.
type HostStatus struct {
	Host     shards.Host
	Err      error         // why it does not answer; then what follows is empty
	Version  string        // of Postgres, such as "15.18"
	Shards   int           // how many of the map's shards that live here are there
	Expected int           // how many the map puts here
	Bytes    int64         // size of the database
	Replicas int           // standbys that stream from it
	Lag      time.Duration // the largest replay lag of those; 0 when all have caught up, or the role may not see it
}

// Status asks all hosts at once how they are doing, in the order of the map's hosts. A host that
// does not answer by the end of ctx has an Err.
func Status(ctx context.Context, m *shards.Map) []HostStatus {
	statuses := make([]HostStatus, len(m.Hosts()))
	var wg sync.WaitGroup
	for i, host := range m.Hosts() {
		wg.Go(func() {
			statuses[i] = hostStatus(ctx, m, host)
		})
	}
	wg.Wait()
	return statuses
}

func hostStatus(ctx context.Context, m *shards.Map, host shards.Host) HostStatus {
	numbers := m.NumbersOn(host.Name)
	s := HostStatus{Host: host, Expected: len(numbers)}
	schemas := make([]string, len(numbers))
	for i, n := range numbers {
		schemas[i] = m.Schema(n)
	}
	conn, err := connect(ctx, host)
	if err != nil {
		s.Err = err
		return s
	}
	defer func() { _ = conn.Close(ctx) }()
	const query = `
		SELECT split_part(current_setting('server_version'), ' ', 1),
			(SELECT count(*) FROM pg_namespace WHERE nspname = ANY ($1)),
			pg_database_size(current_database()),
			(SELECT count(*) FROM pg_stat_replication),
			coalesce((SELECT max(extract(epoch FROM replay_lag)) FROM pg_stat_replication), 0)::float8`
	var lag float64
	err = conn.QueryRow(ctx, query, schemas).Scan(&s.Version, &s.Shards, &s.Bytes, &s.Replicas, &lag)
	if err != nil {
		return HostStatus{Host: host, Expected: len(numbers), Err: err}
	}
	s.Lag = time.Duration(lag * float64(time.Second))
	return s
}
