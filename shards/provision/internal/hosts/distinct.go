package hosts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// identity identifies a database. A physical copy of it has the same identity.
type identity struct {
	database string // the server's system identifier and the database's OID
	standby  bool
}

// CheckDistinct returns a [shards.FieldError] if two hosts are the same database, or one is a standby of the other. A
// promoted standby is another host, although it keeps the system identifier of its old primary. So if two identities
// are equal, an advisory lock decides: a lock held in one database is visible in the other only if they are the same.
func (s *Sessions) CheckDistinct(ctx context.Context) error {
	found := make([]identity, len(s.hosts))
	err := s.Each(func(i int, conn *pgx.Conn) (err error) {
		found[i].database, found[i].standby, err = connect.Identity(ctx, conn)
		return err
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
func (s *Sessions) checkPair(ctx context.Context, a, b int, found []identity) error {
	_, same, err := connect.Same(ctx, s.hosts[a].Name, s.conns[a], s.hosts[b].Name, s.conns[b])
	switch {
	case err != nil:
		return err
	case same:
		return &shards.FieldError{
			Field:    "hosts",
			Found:    "hosts " + s.hosts[a].Name + " and " + s.hosts[b].Name + " are the same database",
			Expected: "a database of its own for each host",
		}
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
