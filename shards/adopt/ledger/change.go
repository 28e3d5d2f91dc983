package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// SetGate changes the gate, and notes it. The error is a [ChangedError] if the gate is not from.
func SetGate(ctx context.Context, q Querier, from, to Gate) error {
	tag, err := q.Exec(ctx, `update kiloshard_adopt.adoption set gate = $2 where gate = $1`, string(from), string(to))
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return changed(ctx, q, "the gate", string(from), `select gate from kiloshard_adopt.adoption`)
	}
	return Note(ctx, q, fmt.Sprintf("gate %s became %s", from, to))
}

// SetStage changes the stage of one shard. The error is a [ChangedError] if it is not from.
func SetStage(ctx context.Context, q Querier, n shards.Number, from, to Stage) error {
	const query = `update kiloshard_adopt.shards set stage = $3, changed_at = clock_timestamp() where shard = $1 and stage = $2`
	tag, err := q.Exec(ctx, query, number(n), string(from), string(to))
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	return changed(ctx, q, fmt.Sprintf("shard %d", n), string(from), `select stage from kiloshard_adopt.shards where shard = $1`, number(n))
}

// SetViews records that the views of a shard were made by statements with this fingerprint. The shard must be at [StageViews], and the
// gate at [GateViews] or [GateClosed]; else the error is a [ChangedError].
func SetViews(ctx context.Context, q Querier, n shards.Number, fingerprint string) error {
	const query = `update kiloshard_adopt.shards set views = $2, changed_at = clock_timestamp() where shard = $1 and stage = 'views'
		and exists (select from kiloshard_adopt.adoption where gate in ('views', 'closed'))`
	tag, err := q.Exec(ctx, query, number(n), fingerprint)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	return changed(ctx, q, fmt.Sprintf("shard %d", n), string(StageViews), `select stage from kiloshard_adopt.shards where shard = $1`, number(n))
}

// SetPlan replaces the text of adopt.yaml, the strategy, and the structure of the old tables. Only [GateViews] allows that; else the error is
// a [ChangedError].
func SetPlan(ctx context.Context, q Querier, a Adoption) error {
	const query = `update kiloshard_adopt.adoption set strategy = $1, file = $2, structure = $3 where gate = 'views' and shards = $4`
	tag, err := q.Exec(ctx, query, a.Strategy, a.File, a.Structure, a.Shards)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	return changed(ctx, q, "the gate", fmt.Sprintf("views, of %d shards", a.Shards), `select gate || ', of ' || shards || ' shards' from kiloshard_adopt.adoption`)
}

// SetStructure replaces the structure of the old tables, at any gate, after a command has changed it.
func SetStructure(ctx context.Context, q Querier, structure string) error {
	_, err := q.Exec(ctx, `update kiloshard_adopt.adoption set structure = $1`, structure)
	return err
}

// Note adds to the history.
func Note(ctx context.Context, q Querier, what string) error {
	_, err := q.Exec(ctx, `insert into kiloshard_adopt.history (gate, what) select gate, $1 from kiloshard_adopt.adoption`, what)
	return err
}

// changed returns the error of a change that found something else.
func changed(ctx context.Context, q Querier, what, expected, query string, args ...any) error {
	found := "missing"
	if err := q.QueryRow(ctx, query, args...).Scan(&found); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return &ChangedError{What: what, Found: found, Expected: expected}
}
