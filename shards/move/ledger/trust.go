package ledger

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Another role, or a compromised host, can write anything into its ledger, and names in a row become parts of statements on other hosts. So
// every reader checks the form of a row, uses it for the host of that ledger only, and acts on the other host only if that host's ledger agrees.

var idPattern = regexp.MustCompile(`^[0-9a-f]{8}$`)

// wellFormed returns an error unless the row has the IDs and the schema that a mover writes for a shard of the map.
func (m Move) wellFormed(of *shards.Map) error {
	ids := []string{m.ID}
	for _, optional := range []string{m.Returns, m.Split} {
		if optional != "" {
			ids = append(ids, optional)
		}
	}
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			return fmt.Errorf("the ledger of moves has the ID %q: expected 8 hexadecimal digits", id)
		}
	}
	if n, ok := of.NumberOf(m.Schema); !ok || n != m.Shard {
		return fmt.Errorf("the ledger of moves has schema %q in move %s of shard %d: expected %s and five digits", m.Schema, m.ID, m.Shard, of.Config().SchemaPrefix)
	}
	return nil
}

// OfSource returns the rows of a host's ledger whose source is that host. A promoted standby also has copies of its primary's rows; they are left
// out, since the primary's ledger has them.
func OfSource(found []Move, of *shards.Map, host string) (own []Move, err error) {
	for _, m := range found {
		if _, known := of.HostNamed(m.Source); m.Source == host {
			own = append(own, m)
		} else if !known && m.Outcome == UnderWay {
			err = fmt.Errorf("the ledger of moves has a move of shard %d from host %q under way: expected %s, or another host of the map", m.Shard, m.Source, host)
		}
	}
	return own, err
}

// Reread reads the move again from the ledger of its source. Its shard, its hosts and its IDs must not have changed.
func (m *Move) Reread(ctx context.Context, source *pgx.Conn) error {
	var now Move
	row := source.QueryRow(ctx, `SELECT `+columns+` FROM kiloshard.moves m WHERE id = $1 AND side = 'source'`, m.ID)
	if err := row.Scan(now.fields()...); err != nil {
		return err
	}
	if now.ID != m.ID || now.Shard != m.Shard || now.Schema != m.Schema || now.Source != m.Source || now.Target != m.Target || now.Returns != m.Returns || now.Split != m.Split {
		return fmt.Errorf("the ledger of %s has changed move %s of shard %d from %s to %s into one of shard %d from %q to %q: expected the same move", m.Source, m.ID, m.Shard, m.Source, m.Target, now.Shard, now.Source, now.Target)
	}
	now.Working = m.Working
	*m = now
	return nil
}

// OnTarget reports whether the target's ledger has the move, too.
func (m Move) OnTarget(ctx context.Context, target *pgx.Conn) (there bool, err error) {
	const query = `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND shard = $2 AND schema = $3 AND source = $4 AND target = $5)`
	err = target.QueryRow(ctx, query, m.ID, m.Shard, m.Schema, m.Source, m.Target).Scan(&there)
	return there, err
}

// ReadPromotion reads the moves of m's promotion again from the ledger of their source. Their hosts must be those of m.
func (m Move) ReadPromotion(ctx context.Context, source *pgx.Conn, of *shards.Map) ([]Move, error) {
	rows, err := source.Query(ctx, `SELECT `+columns+` FROM kiloshard.moves m WHERE split = $1 AND side = 'source' ORDER BY shard`, m.Split)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (now Move, err error) {
		if err := row.Scan(now.fields()...); err != nil {
			return now, err
		}
		if now.Source != m.Source || now.Target != m.Target {
			return now, fmt.Errorf("the ledger of %s has shard %d leave %q for %q in promotion %s: expected %[1]s and %[6]s as for the others", m.Source, now.Shard, now.Source, now.Target, m.Split, m.Target)
		}
		return now, now.wellFormed(of)
	})
}
