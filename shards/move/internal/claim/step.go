package claim

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Held returns how many moves, of m alone or of m's promotion, the source's ledger has at m's step with this session as their mover. No other
// mover aborts or resumes them before the session has ended.
func Held(ctx context.Context, source *pgx.Conn, m ledger.Move) (count int, err error) {
	const query = `
		SELECT count(*) FROM kiloshard.moves
		WHERE (id = $1 OR split = $2) AND side = 'source' AND outcome IS NULL AND step = $3 AND mover = pg_backend_pid()`
	err = source.QueryRow(ctx, query, m.ID, m.Split, m.Step).Scan(&count)
	return count, err
}

// SetStep writes the step that moves are about to begin. It returns false, and has changed nothing, unless the source's ledger has all of them at one
// of the steps before, with this session as their mover.
func SetStep(ctx context.Context, source *pgx.Conn, ids []string, step ledger.Step, before ...ledger.Step) (held bool, err error) {
	const query = `
		UPDATE kiloshard.moves SET step = $2, stepped = clock_timestamp(), error = NULL
		WHERE id = ANY ($1) AND side = 'source' AND outcome IS NULL AND step = ANY ($3) AND mover = pg_backend_pid()`
	tx, err := session.Begin(ctx, source)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	tag, err := tx.Exec(ctx, query, ids, step, before)
	if err != nil || tag.RowsAffected() != int64(len(ids)) {
		return false, err
	}
	return true, tx.Commit(ctx)
}

// SetOutcome ends a move in the ledger of a host, unless it has ended.
func SetOutcome(ctx context.Context, conn *pgx.Conn, m ledger.Move, outcome ledger.Outcome) error {
	_, err := conn.Exec(ctx, `UPDATE kiloshard.moves SET outcome = $2, stepped = clock_timestamp() WHERE id = $1 AND outcome IS NULL`, m.ID, outcome)
	return err
}

// SetError keeps an error in the source's ledger, for kiloshard move status, unless the session is lost. It works after ctx has ended.
func SetError(ctx context.Context, source *pgx.Conn, m ledger.Move, err error) {
	if source.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CancelLimit)
	defer cancel()
	_, _ = source.Exec(ctx, `UPDATE kiloshard.moves SET error = $2 WHERE id = $1 AND outcome IS NULL`, m.ID, err.Error()) // the caller has an error already
}

// Lost is the error of a mover whose moves another one has taken over. names are the names of the shards, such as "shard 7".
func Lost(m ledger.Move, names string) error {
	return fmt.Errorf("the ledger of %s no longer has %s at step %s with this mover: another one has resumed it or taken it back; see kiloshard move status", m.Source, names, m.Step)
}
