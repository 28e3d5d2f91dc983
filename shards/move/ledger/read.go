package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/sql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// The two sides of a move, as the ledger has them.
const (
	SourceSide = "source"
	TargetSide = "target"
)

const columns = `id, shard, schema, source, target, step, coalesce(outcome, ''), who, began, stepped, fenced, coalesce(error, ''), coalesce(offline, false),
	back, coalesce(returns, ''), coalesce(split, '')`

func (m *Move) fields() []any {
	return []any{&m.ID, &m.Shard, &m.Schema, &m.Source, &m.Target, &m.Step, &m.Outcome, &m.Who, &m.Began, &m.Stepped, &m.Fenced, &m.Error, &m.Offline, &m.Back, &m.Returns, &m.Split}
}

// Install makes the ledger on a host if it is not there.
func Install(ctx context.Context, conn *pgx.Conn) error {
	if err := session.Run(ctx, conn, sql.RefuseForeign(sql.Ours{})); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, sql.MovesAreThere()).Scan(&there); err != nil || there {
		return err
	}
	return session.Run(ctx, conn, "BEGIN;\n"+sql.Moves()+"COMMIT")
}

// Read returns the rows of one side on a host, the newest last. Without a ledger there are none.
func Read(ctx context.Context, conn *pgx.Conn, of *shards.Map, side string) ([]Move, error) {
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.moves') IS NOT NULL`).Scan(&there); err != nil || !there {
		return nil, err
	}
	var batch pgx.Batch // one transaction
	batch.Queue(special.Refuse("kiloshard.moves"))
	var found []Move
	batch.Queue(`SELECT `+columns+`, outcome IS NULL AND `+sql.MoverAtWork+` FROM kiloshard.moves m WHERE side = $1 ORDER BY began, id`, side).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Move, error) {
			var m Move
			if err := row.Scan(append(m.fields(), &m.Working)...); err != nil {
				return m, err
			}
			return m, m.wellFormed(of)
		})
		return err
	})
	err := conn.SendBatch(ctx, &batch).Close()
	return found, connect.NameHolders(ctx, conn.PgConn(), err)
}
