package fence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Sequence is one of a shard's sequences, as it was before the fence. kiloshard.fence notes them in the source's ledger.
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
