package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Swept is what [Sweep] has done.
type Swept struct {
	Removed []string // what no move needed any more, such as "pg-a: slot kiloshard_move_00007_1a2b3c4d"
	Unknown []string // what is named like that, and is in no ledger: it is left alone
}

// thing is an object whose name has the form that moves use.
type thing struct {
	Host string
	Kind string
	Name string
	ID   string // of the move
	Back bool   // it belongs to a way back
}

// ledgerKey names a row of a ledger: by its host, and the ID of the move.
type ledgerKey struct{ host, id string }

const thingsQuery = `
SELECT * FROM (
  SELECT 'subscription', subname::text, substring(subname from $1), subname ~ '_back$' FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  UNION ALL
  SELECT 'slot', slot_name::text, substring(slot_name from $1), slot_name ~ '_back$' FROM pg_replication_slots WHERE database = current_database()
  UNION ALL
  SELECT 'publication', pubname::text, substring(pubname from $1), pubname ~ '_back$' FROM pg_publication
  UNION ALL
  SELECT CASE WHEN nspname ~ '__fence_' THEN 'fence' ELSE 'schema' END, nspname::text, substring(nspname from $2), false FROM pg_namespace
) t (kind, name, id, back) WHERE id IS NOT NULL AND NOT pg_is_in_recovery() -- a standby has its primary's`

// The patterns of the names of what moves make, and of the schemas that they rename. The ID is in parentheses.
const thingsPattern = `^kiloshard_move_[0-9]{5}_([0-9a-f]{8})(?:_back)?$`

func schemasPattern(m *shards.Map) string {
	return "^" + m.Config().SchemaPrefix + "[0-9]{5}__(?:fence|moved)_([0-9a-f]{8})$"
}

// Sweep removes what no move needs any more, on all hosts of a map. It lists things before it reads the ledgers: a move is in the ledger before it makes
// anything, so a thing that no ledger has does not belong to a move that began after the list was made. After an error the report has what was done before.
func Sweep(ctx context.Context, m *shards.Map, conns *hosts.Conns) (s Swept, err error) {
	err = s.sweep(ctx, m, conns)
	return s, err
}

func (s *Swept) sweep(ctx context.Context, m *shards.Map, conns *hosts.Conns) error {
	var all []thing
	for _, host := range m.Hosts() {
		conn, err := conns.Get(ctx, host.Name)
		if err != nil {
			return err
		}
		rows, err := conn.Query(ctx, thingsQuery, thingsPattern, schemasPattern(m))
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (thing, error) {
			t := thing{Host: host.Name}
			return t, row.Scan(&t.Kind, &t.Name, &t.ID, &t.Back)
		})
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	// A subscription uses its slot.
	order := []string{"subscription", "slot", "publication", "fence", "schema"}
	slices.SortStableFunc(all, func(a, b thing) int { return cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)) })
	truth, known := map[ledgerKey]ledger.Move{}, map[ledgerKey]ledger.Move{}
	var onTarget []ledger.Move
	for _, host := range m.Hosts() {
		conn, err := conns.Get(ctx, host.Name)
		if err != nil {
			return err
		}
		for _, side := range []string{ledger.SourceSide, ledger.TargetSide} {
			rows, err := ledger.Read(ctx, conn, m, side)
			if err != nil {
				return err
			}
			for _, row := range rows {
				known[ledgerKey{host.Name, row.ID}] = row
				switch {
				case side == ledger.SourceSide && row.Source == host.Name:
					truth[ledgerKey{host.Name, row.ID}] = row
				case side == ledger.TargetSide && row.Target == host.Name:
					onTarget = append(onTarget, row)
				}
			}
		}
	}
	for _, t := range all {
		here, listed := known[ledgerKey{t.Host, t.ID}]
		owner, owned := truth[ledgerKey{here.Source, t.ID}] // from the host that this one's ledger names, and from no other
		switch {
		case !listed:
			s.Unknown = append(s.Unknown, t.String())
		case owned && t.needed(owner, truth):
		case !owned && t.Kind == "schema": // it may be the last copy of the shard
			s.Unknown = append(s.Unknown, t.String())
		default:
			conn, err := conns.Get(ctx, t.Host)
			if err == nil {
				err = t.remove(ctx, conn)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			s.Removed = append(s.Removed, t.String())
		}
	}
	for _, left := range abandoned(onTarget, truth) {
		if err := s.dropAbandoned(ctx, m, conns, left); err != nil {
			return &shards.ShardError{Shard: left.Shard, Schema: left.Schema, Host: left.Target, Err: err}
		}
	}
	return nil
}

func (t thing) String() string { return t.Host + ": " + t.Kind + " " + t.Name }

// needed reports whether a move that is in the ledger of its source needs something.
func (t thing) needed(owner ledger.Move, all map[ledgerKey]ledger.Move) bool {
	for _, m := range all {
		if m.Outcome == ledger.UnderWay && (m.ID == owner.ID || m.Returns == owner.ID) {
			return true
		}
	}
	switch {
	case t.Back:
		return !owner.BackUntil().IsZero()
	case t.Kind == "schema":
		return owner.Outcome != ledger.Cleaned
	}
	return false
}

func (t thing) remove(ctx context.Context, conn *pgx.Conn) error {
	switch t.Kind {
	case "subscription":
		return replicate.DropSubscription(ctx, conn, t.Name)
	case "slot":
		return wait.Until(ctx, claim.Wait, wait.Slowly, errors.New("it is still in use"), func() (bool, error) {
			_, err := conn.Exec(ctx, `SELECT pg_drop_replication_slot(slot_name)::text FROM pg_replication_slots WHERE slot_name = $1`, t.Name)
			return err == nil, session.Ignoring(err, "55006")
		})
	case "publication":
		return session.Run(ctx, conn, "DROP PUBLICATION IF EXISTS "+session.Name(t.Name))
	case "fence":
		return session.Run(ctx, conn, fence.Drop(t.Name))
	}
	return session.Run(ctx, conn, "DROP SCHEMA IF EXISTS "+session.Name(t.Name)+" CASCADE")
}
