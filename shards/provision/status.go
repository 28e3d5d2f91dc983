package provision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// HostStatus is how one host is doing.
type HostStatus struct {
	Host     shards.Host
	Err      error         // why it does not answer; then what follows is empty
	Version  string        // of Postgres, such as "15.18"
	Shards   int           // how many of the map's shards that live here are there
	Expected int           // how many the map puts here
	Missing  shards.Set    // those of them that are not there
	Strays   shards.Set    // shards that are here, and that the map puts on another host
	Bytes    int64         // size of the database
	Replicas int           // standbys that stream from it
	Lag      time.Duration // the largest replay lag of those; 0 when all have caught up, or the role may not see it

	// Recovery says that it takes no writes: it is a standby that was not promoted, and so are its other addresses.
	Recovery  bool
	Addresses []AddressStatus // of a host with several, in their order; nil for one address
	Standbys  []StandbyStatus // as many as Replicas, by name

	Sessions     int   // to the database, this one included
	Transactions int64 // that it has ended so far, as its statistics say

	MissingExtensions []string // names of extensions of the map that it does not have

	Leads []Lead // farthest first; those that the role may see
}

// StandbyStatus is a standby that streams from a host, as the host says.
type StandbyStatus struct {
	Name  string        // its application_name
	State string        // such as streaming; empty if the role may not see it
	Lag   time.Duration // of replay; 0 when it has caught up, or the role may not see it
}

// Status asks all hosts at once how they are doing, in the order of the map's hosts. A host that
// does not answer by the end of ctx has an Err. Of a host with several addresses each is asked what it is; all else is what
// the primary says, or a standby if there is no primary.
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
	var conn *pgx.Conn
	if addresses := addressesOf(host); len(addresses) > 1 {
		if s.Addresses, conn = findPrimary(ctx, addresses); conn == nil {
			for _, a := range s.Addresses {
				s.Err = errors.Join(s.Err, fmt.Errorf("%s: %w", a.Address, a.Err))
			}
			return s
		}
	} else if conn, s.Err = open(ctx, host); s.Err != nil {
		return s
	}
	defer func() { _ = conn.Close(ctx) }()
	const query = `
		SELECT split_part(current_setting('server_version'), ' ', 1),
			ARRAY(SELECT nspname::text FROM pg_namespace WHERE nspname ~ $1 EXCEPT ` + fencesQuery + `),
			pg_database_size(current_database()),
			ARRAY(SELECT e FROM unnest($3::text[]) WITH ORDINALITY w (e, turn) WHERE e NOT IN (SELECT extname FROM pg_extension) ORDER BY turn),
			numbackends, xact_commit + xact_rollback, pg_is_in_recovery()
		FROM pg_stat_database WHERE datname = current_database()`
	var schemas []string
	err := conn.QueryRow(ctx, query, schemaPattern(m), sql.FenceMark, extensionNames(m)).Scan(&s.Version, &schemas, &s.Bytes, &s.MissingExtensions, &s.Sessions, &s.Transactions, &s.Recovery)
	if err == nil {
		s.Standbys, err = standbys(ctx, conn)
	}
	if err == nil {
		s.Leads, err = leads(ctx, conn, m, host)
	}
	if err != nil {
		return HostStatus{Host: host, Expected: len(numbers), Addresses: s.Addresses, Err: err}
	}
	s.count(m, numbers, schemas)
	s.Replicas = len(s.Standbys)
	for _, standby := range s.Standbys {
		s.Lag = max(s.Lag, standby.Lag)
	}
	return s
}

// count compares the schemas that are there with those that the map puts there.
func (s *HostStatus) count(m *shards.Map, expected []shards.Number, schemas []string) {
	var here, missing, strays []shards.Number
	for _, schema := range schemas {
		if n, ok := m.NumberOf(schema); ok && m.Has(n) {
			here = append(here, n)
			if m.Host(n).Name != s.Host.Name {
				strays = append(strays, n)
			}
		}
	}
	found := shards.SetOf(here...)
	for _, n := range expected {
		if !found.Has(n) {
			missing = append(missing, n)
		}
	}
	s.Shards, s.Missing, s.Strays = len(expected)-len(missing), shards.SetOf(missing...), shards.SetOf(strays...)
}

func standbys(ctx context.Context, conn *pgx.Conn) ([]StandbyStatus, error) {
	const query = `
		SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(extract(epoch FROM replay_lag), 0)::float8
		FROM pg_stat_replication r WHERE state IS DISTINCT FROM 'backup'
			AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = r.pid AND a.datid IS NOT NULL) -- it reads changes, such as for a move
		ORDER BY 1, pid`
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s StandbyStatus, err error) {
		var lag float64
		err = row.Scan(&s.Name, &s.State, &lag)
		s.Lag = time.Duration(lag * float64(time.Second))
		return s, err
	})
}
