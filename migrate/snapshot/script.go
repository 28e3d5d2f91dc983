package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// prologue begins a transaction as package migrate does, by the ledger's own function: it locks the shard, without
// waiting, and checks that it is at version 0. Its parameters: the class of the lock, the number, the schema.
const prologue = `begin isolation level read committed;
set local search_path = pg_catalog;
set local check_function_bodies = off;
set local standard_conforming_strings = on;
set local client_min_messages = warning;
select kiloshard.begin_migration(%d, %d, '%s', 0, 'pg_catalog, pg_temp', '', '', true);
`

// keepLedger creates a host's ledger if it is missing, since scripts call its functions.
func keepLedger(ctx context.Context, conn *pgx.Conn) error {
	if err := run(ctx, conn, sql.RefuseForeign(sql.Ours{})); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, sql.LedgerIsThere(), pgx.QueryExecModeExec).Scan(&there); there || err != nil {
		return err
	}
	return run(ctx, conn, "begin;\n"+sql.Ledger()+"commit")
}

// Text returns the statements that make the snapshot's structure, with the marks of package drift in place of a shard's
// schema and number: see [drift.Render]. Run them with a search_path of pg_catalog only, and with check_function_bodies off.
func (s *Snapshot) Text() string { return text(s.structure) }

// text returns the statements of lines, with marks.
func text(lines drift.Structure) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + ";\n")
	}
	return b.String()
}

// Script returns the text that takes shard n from version 0 to the snapshot's version, in one transaction that it begins
// and commits. It fails, and changes nothing, with SQLSTATE KSV01 if the shard is at another version by then, and with
// KSV02 if another program migrates it. The host must have the ledger. The commit does not wait for the disk. A further
// statement, if any, runs at the end of the transaction.
func (s *Snapshot) Script(n shards.Number, further string) string {
	if further != "" {
		further += ";\n"
	}
	return s.begun(n) + further + "commit;\n"
}

// begun returns the script without its end.
func (s *Snapshot) begun(n shards.Number) string {
	schema := s.m.Schema(n)
	return fmt.Sprintf(prologue, sql.ShardLock, n, schema) + drift.Render(s.Text(), schema, n) +
		fmt.Sprintf("update %s.schema_version set version = %d;\n", schema, s.version)
}

// DifferenceError says that a shard made from a snapshot differs from its donor.
type DifferenceError struct {
	Differences []string // "+ …" for lines that only the new shard has, "- …" for lines that only the donor has
}

// Error names the first difference.
func (e *DifferenceError) Error() string {
	text := "made from the snapshot, it differs from the donor: " + e.Differences[0]
	if more := len(e.Differences) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more differences", more)
	}
	return text
}

// Check makes shard n, which must be at version 0, in a transaction, compares it with the donor, and rolls the
// transaction back. Its error wraps a [DifferenceError], a [BeyondError], or the server's error.
func (s *Snapshot) Check(ctx context.Context, n shards.Number) error {
	var made []string
	err := on(ctx, s.m, n, func(conn *pgx.Conn) error {
		if err := keepLedger(ctx, conn); err != nil {
			return err
		}
		if _, err := conn.PgConn().Exec(ctx, s.begun(n)).ReadAll(); err != nil {
			return fmt.Errorf("a shard made from the snapshot: %w", err)
		}
		found, err := drift.Read(ctx, conn, s.m, n)
		if err != nil {
			return err
		}
		if made, err = beyond(ctx, conn, s.m, n); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "rollback")
		want := s.structure.Of(n)
		if !found[n].Equal(want) {
			return errors.Join(&DifferenceError{Differences: drift.Differences(want, found[n])}, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return compareBeyond(s.donor.Shard, s.beyond, n, made)
}
