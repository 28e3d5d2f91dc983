package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// cutoverOffline copies the shard while it is locked, for hosts without logical replication: readers and writers wait as long as the
// copy takes. A mover that dies there frees the shard, since its locks go with its connection.
func (j *job) cutoverOffline(ctx context.Context) error {
	if err := j.prepareFence(ctx); err != nil {
		return err
	}
	if err := j.openWayBack(ctx); err != nil {
		return err
	}
	if err := j.verifyStructure(ctx); err != nil {
		return err
	}
	began := time.Now()
	for {
		if err := j.untilQuiet(ctx, j.from, began, j.Schema); err != nil {
			return err
		}
		err := j.copyLocked(ctx)
		if err == nil || code(err) != "55P03" || ctx.Err() != nil {
			return err
		}
		if j.outOfPatience(began) {
			return fmt.Errorf("no locks within %s: %w", j.cfg.Patience, err)
		}
		j.event("tries again: %v", err)
		if err := sleep(ctx, cutoverPause/10); err != nil {
			return err
		}
	}
}

// copyLocked takes the locks, copies and compares all rows, and fences the source.
func (j *job) copyLocked(ctx context.Context) error {
	cut, err := open(ctx, j.src)
	if err != nil {
		return err
	}
	defer closeConn(ctx, cut)
	tx, err := cut.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := run(ctx, cut, keepOutVacuum(j.Schema)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf(`SELECT set_config('lock_timeout', '%d', true), set_config('idle_in_transaction_session_timeout', '0', true)`, j.cfg.LockTimeout.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, lockOut(j.Schema)); err != nil {
		return err
	}
	began := time.Now()
	j.event("locked")
	if err := j.copyRows(ctx, tx); err != nil {
		return err
	}
	j.event("comparing")
	if err := j.compare(ctx, tx, j.Schema, j.to, [2]string{}); err != nil {
		return err
	}
	sequences, err := sequencesOf(ctx, tx, j.Schema)
	if err != nil {
		return err
	}
	if err := j.carry(ctx, sequences); err != nil {
		return fmt.Errorf("sequences on %s: %w", j.Target, err)
	}
	j.event("carried")
	if err := j.erect(ctx, tx, sequences); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	j.event("released after %s", time.Since(began).Round(time.Millisecond))
	return nil
}

// copyRows copies the rows of all tables, in one transaction of the target, in which neither triggers nor foreign keys are heeded: the
// rows have met them on the source.
func (j *job) copyRows(ctx context.Context, from pgx.Tx) error {
	const query = `
		SELECT c.relname::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' GROUP BY 1 ORDER BY 1`
	rows, err := from.Query(ctx, query, j.Schema)
	if err != nil {
		return err
	}
	type table struct{ Name, Columns string }
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		return err
	}
	to, err := j.to.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = to.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := to.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
		return err
	}
	if _, err := to.Exec(ctx, truncateAll(j.Schema)); err != nil {
		return err
	}
	meter := &meter{job: j, began: time.Now()}
	for _, t := range tables {
		text := name(j.Schema, t.Name) + " (" + t.Columns + ")"
		if err := stream(ctx, from.Conn(), "COPY "+text+" TO STDOUT", j.to, "COPY "+text+" FROM STDIN", meter); err != nil {
			return fmt.Errorf("copying %s: %w", t.Name, err)
		}
	}
	j.event("copied")
	return to.Commit(ctx)
}

// stream copies from one session to another.
func stream(ctx context.Context, from *pgx.Conn, out string, to *pgx.Conn, in string, through *meter) error {
	reader, writer := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := from.PgConn().CopyTo(ctx, io.MultiWriter(through, writer), out)
		_ = writer.CloseWithError(err) // never fails
		read <- err
	}()
	_, err := to.PgConn().CopyFrom(ctx, reader, in)
	_ = reader.CloseWithError(errors.New("the target takes no more")) // never fails
	readErr := <-read
	if err != nil {
		return err
	}
	return readErr
}

// meter is written to whatever is copied. It tells how far it is, and holds it up to the rate that is wanted.
type meter struct {
	job   *job
	began time.Time
	told  time.Time
	bytes int64
}

func (m *meter) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	j := m.job
	if rate := j.cfg.Rate; rate > 0 {
		if due := time.Duration(float64(m.bytes) / float64(rate) * float64(time.Second)); due > time.Since(m.began) {
			time.Sleep(due - time.Since(m.began))
		}
	}
	if time.Since(m.told) > time.Second {
		m.told = time.Now()
		j.tell(j.copying(m.began, m.bytes))
	}
	return len(p), nil
}
