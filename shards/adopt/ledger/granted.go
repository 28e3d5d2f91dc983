package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Helper stands for the helper schema kiloshard, where a shard is expected.
const Helper shards.Number = -1

// Right is USAGE on the schema of a shard, or on its sequence, that a role did not have before the adoption.
type Right struct {
	Object string // schema or sequence
	Role   string // empty for PUBLIC
}

// AddRights records rights that were granted.
func AddRights(ctx context.Context, q Querier, n shards.Number, rights []Right) error {
	for _, r := range rights {
		const query = `insert into kiloshard_adopt.granted values ($1, $2, $3) on conflict do nothing`
		if _, err := q.Exec(ctx, query, number(n), r.Object, r.Role); err != nil {
			return err
		}
	}
	return nil
}

// TakeRights returns the rights that were recorded, and forgets them.
func TakeRights(ctx context.Context, q Querier, n shards.Number) ([]Right, error) {
	rows, err := q.Query(ctx, `delete from kiloshard_adopt.granted where shard = $1 returning object, role`, number(n))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Right])
}
