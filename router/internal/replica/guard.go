package replica

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/serverrole"
)

// GuardColumns are three columns for a statement at the beginning of a read transaction; [ParseSeen] parses their values.
// They identify the server and contain the WAL position that it has replayed. Later statements of the transaction see data
// at least as new. (A statement with the same snapshot may see older data, and so do all statements of a repeatable read
// transaction. In that case ask before the transaction, and make sure that it runs on the same server.)
const GuardColumns = `pg_catalog.pg_is_in_recovery(), coalesce((pg_catalog.pg_last_wal_replay_lsn() - '0/0')::int8, 0),
	(extract(epoch from pg_catalog.pg_postmaster_start_time()) * 1000000)::int8`

// Seen is the answer of a server to [GuardColumns].
type Seen struct {
	Standby  bool
	Replayed uint64 // WAL position
	Server   string // its start time in microseconds, which identifies it within its cluster
}

// ParseSeen parses the values of [GuardColumns], in the text format.
func ParseSeen(values [][]byte) (Seen, error) {
	if len(values) != 3 {
		return Seen{}, errNoAnswer
	}
	replayed, err := strconv.ParseInt(string(values[1]), 10, 64)
	if err != nil {
		return Seen{}, fmt.Errorf("a server's position: %w", err)
	}
	return Seen{string(values[0]) == "t", uint64(replayed), string(values[2])}, nil
}

var (
	errNoAnswer = errors.New("the server did not return its position")
	errUnknown  = errors.New("the connection is to a server that was not measured yet")
	errBehind   = errors.New("the connection is to a server that is behind")
)

// Ask asks the server of a connection of replica i for what [Set.Check] needs, such as how far it has replayed the WAL.
// The connection must be idle or in a transaction. The error is that of the connection, or says why callers must not read
// from the server: it was promoted, or is behind an earlier position of its own.
func (s *Set) Ask(ctx context.Context, i int, conn *pgconn.PgConn) (Seen, error) {
	r := s.all[i]
	before := r.now.Load() // read first: a later measurement may overtake this answer on its way
	values, err := ask(ctx, conn, `select `+GuardColumns)
	if err != nil {
		return Seen{}, err
	}
	seen, err := ParseSeen(values)
	if err != nil {
		return Seen{}, err
	}
	measured := before != nil && before.server == seen.Server
	switch {
	case !seen.Standby:
		if measured {
			r.doubt(errNoStandby)
			s.promoted()
		}
		return seen, errNoStandby
	case measured && seen.Replayed < before.replayed:
		r.doubt(errRegressed)
		return seen, errRegressed
	}
	s.mu.Lock()
	known, ok := r.servers[seen.Server]
	current := ok && known.timeline >= s.timeline
	s.mu.Unlock()
	if current {
		return seen, nil
	}
	return seen, r.learn(ctx, conn)
}

// Check returns why the answer of a server of replica i must not be used, for a read that began at the given time: the
// server had not replayed enough, or is not a standby of the primary. It returns nil if the answer is good.
func (s *Set) Check(i int, want *Want, began time.Time, seen Seen) error {
	if !seen.Standby {
		return errNoStandby
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.all[i].servers[seen.Server]
	switch {
	case !ok:
		return errUnknown
	case s.system == 0:
		return errNoLog
	case known.system != s.system:
		return errOther
	case known.timeline < s.timeline:
		return errTimeline
	case !want.After.IsZero() && !known.has(want.After):
		return errOtherHistory
	case seen.Replayed < want.After.lsn:
		return errNotReplayed
	}
	if asOf := s.log.asOf(seen.Replayed); asOf.IsZero() || began.Sub(asOf) > want.MaxLag {
		return errBehind
	}
	return nil
}

// learn asks a server for its cluster and for the timeline of its data. A replica that was ahead of the new primary at its
// promotion has changes that the primary never had. It does not follow the primary's timeline, although its WAL positions
// may look as if it did. Behind a pooler this answer may come from another server than the answer before.
func (r *replica) learn(ctx context.Context, conn *pgconn.PgConn) error {
	const query = `select (extract(epoch from pg_postmaster_start_time()) * 1000000)::int8,
	(select system_identifier from pg_control_system()), ` + serverrole.DataTimeline
	values, err := ask(ctx, conn, query)
	if err != nil {
		return err
	}
	system, err := strconv.ParseInt(string(values[1]), 10, 64)
	if err != nil {
		return fmt.Errorf("a server's cluster: %w", err)
	}
	timeline, err := strconv.ParseUint(string(values[2]), 10, 32)
	if err != nil {
		return fmt.Errorf("a server's timeline: %w", err)
	}
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	if len(r.servers) >= maxServers {
		clear(r.servers)
	}
	r.servers[string(values[0])] = facts{system, uint32(timeline)}
	return nil
}

// maxServers limits how many servers of one replica are remembered. A restarted server counts as another one.
const maxServers = 256

// ask returns the only row of a query. It uses pgconn, so tracers do not see it.
func ask(ctx context.Context, conn *pgconn.PgConn, query string) ([][]byte, error) {
	result := conn.ExecParams(ctx, query, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Rows) != 1 {
		return nil, errNoAnswer
	}
	return result.Rows[0], nil
}
