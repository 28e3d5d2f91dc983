package provision

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// identity identifies a database. A physical copy of it has the same identity.
type identity struct {
	database string // the server's system identifier and the database's OID
	standby  bool
}

// checkDistinct returns a [shards.FieldError] if two hosts are the same database, or one is a standby of the other. A
// promoted standby is another host, although it keeps the system identifier of its old primary. So if two identities are
// equal, an advisory lock decides: a lock held in one database is visible in the other only if they are the same.
func (s *sessions) checkDistinct(ctx context.Context) error {
	found := make([]identity, len(s.hosts))
	const query = `
		SELECT s.system_identifier::text || '/' || d.oid::text, pg_is_in_recovery()
		FROM pg_database d, pg_control_system() s WHERE d.datname = current_database()`
	err := s.each(func(i int, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, query).Scan(&found[i].database, &found[i].standby)
	})
	if err != nil {
		return err
	}
	alike := map[string][]int{}
	for i, id := range found {
		if s.conns[i] == nil {
			continue
		}
		alike[id.database] = append(alike[id.database], i)
	}
	for _, hosts := range alike {
		for k, a := range hosts {
			for _, b := range hosts[k+1:] {
				if err := s.checkPair(ctx, a, b, found); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkPair compares two hosts with the same identity.
func (s *sessions) checkPair(ctx context.Context, a, b int, found []identity) error {
	same, err := s.sameDatabase(ctx, a, b)
	switch {
	case err != nil:
		return err
	case same:
		return &shards.FieldError{Field: "hosts", Found: "hosts " + s.hosts[a].Name + " and " + s.hosts[b].Name + " are the same database", Expected: "a database of its own for each host"}
	case found[a].standby:
		a, b = b, a
	}
	if !found[b].standby {
		return nil
	}
	return &shards.FieldError{
		Field:    "hosts",
		Found:    "host " + s.hosts[b].Name + " is a standby with the data of host " + s.hosts[a].Name,
		Expected: "a primary: promote the standby, or name it among the replicas of " + s.hosts[a].Name,
	}
}

// sameDatabase reports whether a lock held in one host's database is visible in the other's.
func (s *sessions) sameDatabase(ctx context.Context, a, b int) (same bool, err error) {
	key := rand.Int64()
	tx, err := s.conns[a].Begin(ctx)
	if err == nil {
		defer func() { _ = tx.Rollback(ctx) }()
		_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key)
	}
	if err != nil {
		return false, &shards.HostError{Host: s.hosts[a].Name, Err: err}
	}
	const query = `
		SELECT EXISTS (
			SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
			WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32) | l.objid::bigint = $1
		)`
	if err := s.conns[b].QueryRow(ctx, query, key).Scan(&same); err != nil {
		return false, &shards.HostError{Host: s.hosts[b].Name, Err: err}
	}
	return same, nil
}
