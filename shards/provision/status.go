package provision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/serverrole"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/extensions"
	"github.com/kiloshard/kiloshard/shards/provision/internal/fences"
	"github.com/kiloshard/kiloshard/shards/provision/internal/leads"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// HostStatus is the state of one host.
type HostStatus struct {
	Host     shards.Host
	Err      error         // why it does not answer; then the fields below are empty
	Version  string        // of Postgres, such as "15.18"
	Shards   int           // how many of the map's shards here exist
	Expected int           // how many the map puts here
	Missing  shards.Set    // those of them that do not exist
	Strays   shards.Set    // shards that are here, and that the map puts on another host
	Bytes    int64         // size of the database
	Replicas int           // standbys that stream from it
	Lag      time.Duration // the largest replay lag of those; 0 if all have caught up, or the role may not see it

	// Recovery says that it takes no writes: it is a standby that was not promoted, and so are its other addresses.
	Recovery  bool
	Addresses []AddressStatus // of a host with several, in their order; nil for one address
	Standbys  []StandbyStatus // as many as Replicas, by name

	MapReplicas []AddressStatus // the map's replicas of the host, without those at its addresses
	Rivals      []Rival         // among Addresses and MapReplicas

	Sessions     int   // to the database, this one included
	Transactions int64 // that have ended, according to its statistics

	MissingExtensions []string // names of extensions of the map that it does not have

	Leads []Lead // farthest first; those that the role may see
}

// StandbyStatus is a standby that streams from a host, as the host reports it.
type StandbyStatus struct {
	Name  string        // its application_name
	State string        // such as streaming; empty if the role may not see it
	Lag   time.Duration // of replay; 0 if it has caught up, or the role may not see it
}

// Lead is a sequence that leads the clock of its host by more than load alone can cause: the clock has stepped back.
// Until the clock has caught up, an asynchronous failover that loses WAL can make IDs that were given before.
type Lead struct {
	Schema   string
	Sequence string
	By       time.Duration
}

// Status returns the state of all hosts, in the order of the map's hosts. It asks them at once. A host that does not
// answer by the end of ctx has an Err. If a host has several addresses, Status asks each for its role, and the primary
// for everything else; without a primary, a standby. It asks the map's replicas for their roles, too.
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
	addresses := addressesOf(host)
	replicas := replicasOf(host, addresses)
	others := askReplicas(ctx, replicas)
	all, at := s.open(ctx, addresses, len(replicas) > 0)
	if at != nil {
		defer at.close(ctx)
		if err := s.read(ctx, at.conn, m, numbers); err != nil {
			s = HostStatus{Host: host, Expected: len(numbers), Addresses: s.Addresses, Err: err}
		}
	}
	s.MapReplicas = others(at)
	s.Rivals = rivals(host.Name, all, s.MapReplicas)
	return s
}

// open connects to a host, of several addresses to the primary; without one, to a standby. It returns the states of the addresses and the one that
// it has connected to. If none answers, it sets Err. With role it reads the role of a host with one address, too.
func (s *HostStatus) open(ctx context.Context, addresses []*address, role bool) ([]AddressStatus, *address) {
	if len(addresses) > 1 {
		var at *address
		if s.Addresses, at = findPrimary(ctx, addresses); at == nil {
			for _, a := range s.Addresses {
				s.Err = errors.Join(s.Err, fmt.Errorf("%s: %w", a.Address, a.Err))
			}
		}
		return s.Addresses, at
	}
	var at address
	if at.conn, s.Err = session.Open(ctx, s.Host); s.Err != nil {
		return nil, nil
	}
	if !role {
		return nil, &at
	}
	if at.role, s.Err = serverrole.Read(ctx, at.conn.PgConn()); s.Err != nil {
		at.close(ctx)
		return nil, nil
	}
	return []AddressStatus{{Address: addresses[0].name, Recovery: at.role.Recovery, Timeline: at.role.Timeline, Primary: !at.role.Recovery}}, &at
}

// read reads the fields of a host that answers.
func (s *HostStatus) read(ctx context.Context, conn *pgx.Conn, m *shards.Map, expected []shards.Number) error {
	const query = `
		SELECT split_part(current_setting('server_version'), ' ', 1),
			ARRAY(SELECT nspname::text FROM pg_namespace WHERE nspname ~ $1 EXCEPT ` + fences.Query + `),
			pg_database_size(current_database()),
			ARRAY(SELECT e FROM unnest($3::text[]) WITH ORDINALITY w (e, turn) WHERE e NOT IN (SELECT extname FROM pg_extension) ORDER BY turn),
			numbackends, xact_commit + xact_rollback, pg_is_in_recovery()
		FROM pg_stat_database WHERE datname = current_database()`
	var schemas []string
	err := conn.QueryRow(ctx, query, mapsql.Pattern(m), sql.FenceMark, extensions.Names(m)).Scan(
		&s.Version, &schemas, &s.Bytes, &s.MissingExtensions, &s.Sessions, &s.Transactions, &s.Recovery)
	if err != nil {
		return err
	}
	s.count(m, expected, schemas)
	if s.Standbys, err = standbys(ctx, conn); err != nil {
		return err
	}
	s.Replicas = len(s.Standbys)
	for _, standby := range s.Standbys {
		s.Lag = max(s.Lag, standby.Lag)
	}
	found, err := leads.Read(ctx, conn, m, s.Host)
	for _, l := range found {
		s.Leads = append(s.Leads, Lead(l))
	}
	return err
}

// count compares the schemas of a host with those that the map puts there.
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
	// A session that reads a logical slot, such as that of a move, belongs to a database and is no standby.
	const query = `
		SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(extract(epoch FROM replay_lag), 0)::float8
		FROM pg_stat_replication r WHERE state IS DISTINCT FROM 'backup'
			AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = r.pid AND a.datid IS NOT NULL)
		ORDER BY 1, pid`
	rows, _ := conn.Query(ctx, query) // rows has the error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s StandbyStatus, err error) {
		var lag float64
		err = row.Scan(&s.Name, &s.State, &lag)
		s.Lag = time.Duration(lag * float64(time.Second))
		return s, err
	})
}
