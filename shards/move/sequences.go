package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// sequence is one of the shard's. In the ledger it is what [sequence.release] needs.
type sequence struct {
	Name      string `json:"name"`
	Start     int64  `json:"-"`
	Increment int64  `json:"increment"`
	Min       int64  `json:"-"`
	Max       int64  `json:"max"`
	Cycle     bool   `json:"cycle"`
	Last      int64  `json:"last"`
	Called    bool   `json:"called"` // Last was given
}

// hold returns the statements after which a sequence gives nothing, whoever knows its OID: it is at its end. ALTER SEQUENCE gives it a new
// file, so that the setval is undone as well if the transaction comes to nothing.
func (s sequence) hold(schema string) string {
	at, end := session.Name(schema, s.Name), max(s.Last, s.Start, s.Min+1)
	return fmt.Sprintf("ALTER SEQUENCE %s MAXVALUE %d INCREMENT 1 NO CYCLE; SELECT setval('%s', %[2]d);\n", at, end, session.Quoted(at))
}

// release returns the statements that undo [sequence.hold].
func (s sequence) release(schema string) string {
	at, cycle := session.Name(schema, s.Name), "NO CYCLE"
	if s.Cycle {
		cycle = "CYCLE"
	}
	return fmt.Sprintf("ALTER SEQUENCE %s MAXVALUE %d INCREMENT %d %s; SELECT setval('%s', %d, %t);\n", at, s.Max, s.Increment, cycle, session.Quoted(at), s.Last, s.Called)
}

// heldBy returns the sequences as they were before a move has held them, from the ledger of its source.
func heldBy(ctx context.Context, source *pgx.Conn, id string) (held []sequence, err error) {
	err = source.QueryRow(ctx, `SELECT coalesce(sequences, '[]') FROM kiloshard.moves WHERE id = $1`, id).Scan(&held)
	return held, err
}

// sequencesOf returns the sequences of a schema as they are now.
func sequencesOf(ctx context.Context, tx pgx.Tx, schema string) ([]sequence, error) {
	const query = `
		SELECT c.relname, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcycle, 0::bigint, false
		FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid WHERE c.relnamespace = $1::regnamespace ORDER BY 1`
	rows, err := tx.Query(ctx, query, schema)
	if err != nil {
		return nil, err
	}
	sequences, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sequence])
	for i := range sequences {
		s := &sequences[i]
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT last_value, is_called FROM "+session.Name(schema, s.Name), pgx.QueryExecModeExec).Scan(&s.Last, &s.Called)
		}
	}
	return sequences, err
}

// carry sets the target's sequences to where the source's are, never back, and returns when that and all that was applied
// before is on the target's disk: workers of subscriptions do not wait for it.
func (j *job) carry(ctx context.Context, sequences []sequence) error {
	if len(sequences) > 0 { // in the session that has locked them; with new files, as in [sequence.hold]
		script := ""
		for _, s := range sequences {
			script += fmt.Sprintf("ALTER SEQUENCE %s MAXVALUE %d;\n", session.Name(j.Schema, s.Name), s.Max)
		}
		if err := session.Run(ctx, j.opening, script+setSequences(j.Schema, sequences)); err != nil {
			return err
		}
	}
	if err := j.settle(ctx); err != nil {
		return err
	}
	return j.to.QueryRow(ctx, `SELECT pg_current_snapshot()::text`).Scan(&j.carried)
}

// setSequences returns the statements that set the sequences of a schema to where others are; next_id_seq is never set back.
func setSequences(schema string, sequences []sequence) string {
	script := ""
	for _, s := range sequences {
		at := session.Name(schema, s.Name)
		script += fmt.Sprintf("SELECT setval('%s', %d, %t)", session.Quoted(at), s.Last, s.Called)
		if s.Name == "next_id_seq" {
			script += fmt.Sprintf(" FROM %s WHERE NOT is_called OR last_value < %d", at, s.Last)
		}
		script += ";\n"
	}
	return script
}
