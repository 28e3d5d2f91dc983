package fence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Sequence is one of a shard's sequences, as it was before the fence. The source's ledger has them.
type Sequence struct {
	Name   string `json:"name"`
	Max    int64  `json:"max"`
	Last   int64  `json:"last"`
	Called bool   `json:"called"` // Last was given
}

// Held returns the sequences as they were before the fence of a move, from the ledger of its source.
func Held(ctx context.Context, source *pgx.Conn, m ledger.Move) (held []Sequence, err error) {
	err = source.QueryRow(ctx, `SELECT coalesce(sequences, '[]') FROM kiloshard.moves WHERE id = $1`, m.ID).Scan(&held)
	return held, err
}

// Sequences returns the sequences of a schema as they are now.
func Sequences(ctx context.Context, tx pgx.Tx, schema string) ([]Sequence, error) {
	const query = `
		SELECT c.relname, s.seqmax, 0::bigint, false
		FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid WHERE c.relnamespace = $1::regnamespace ORDER BY 1`
	rows, err := tx.Query(ctx, query, schema)
	if err != nil {
		return nil, err
	}
	sequences, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Sequence])
	for i := range sequences {
		s := &sequences[i]
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT last_value, is_called FROM "+session.Name(schema, s.Name), pgx.QueryExecModeExec).Scan(&s.Last, &s.Called)
		}
	}
	return sequences, err
}

// Carry returns the statements that set the sequences of a schema to where others are. With new files a rollback undoes that.
func Carry(schema string, sequences []Sequence) string {
	script := ""
	for _, s := range sequences {
		script += fmt.Sprintf("ALTER SEQUENCE %s MAXVALUE %d;\n", session.Name(schema, s.Name), s.Max)
	}
	return script + Set(schema, sequences)
}

// Set returns the statements that set the sequences of a schema to where others are; next_id_seq is never set back.
func Set(schema string, sequences []Sequence) string {
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
