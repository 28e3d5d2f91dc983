package move

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// copyRows copies the rows of all tables that a session sees, in one transaction of the target, which last ends. Neither triggers nor
// foreign keys are heeded there: the rows have met them on the source.
func (j *job) copyRows(ctx context.Context, from *pgx.Conn, last func(to pgx.Tx) error) error {
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
	meter := &meter{job: j, began: time.Now(), pause: func(d time.Duration) error { return sleep(ctx, d) }}
	for _, t := range tables {
		text := name(j.Schema, t.Name) + " (" + t.Columns + ")"
		if err := stream(ctx, from, "COPY "+text+" TO STDOUT", j.to, "COPY "+text+" FROM STDIN", meter); err != nil {
			return fmt.Errorf("copying %s: %w", t.Name, err)
		}
	}
	j.event("copied")
	if err := last(to); err != nil {
		return err
	}
	return to.Commit(ctx)
}

// streamBuffer is how many bytes go from one session to another at a time: each row by itself would cost more than it takes.
const streamBuffer = 8 << 10

// stream copies from one session to another.
func stream(ctx context.Context, from *pgx.Conn, out string, to *pgx.Conn, in string, through *meter) error {
	reader, writer := io.Pipe()
	read := make(chan error, 1)
	go func() {
		buffer := bufio.NewWriterSize(writer, streamBuffer)
		_, err := from.PgConn().CopyTo(ctx, io.MultiWriter(through, buffer), out)
		if err == nil {
			err = buffer.Flush()
		}
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

// shortestPause is how long a copy is held up at least, so that it is not for each row.
const shortestPause = time.Millisecond

// meter is written to whatever is copied. It tells how far it is, and holds it up to the rate that is wanted.
type meter struct {
	job   *job
	pause func(time.Duration) error
	began time.Time
	told  time.Time
	bytes int64
}

func (m *meter) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	j := m.job
	if rate := j.cfg.Rate; rate > 0 {
		due := time.Duration(float64(m.bytes) / float64(rate) * float64(time.Second))
		if early := due - time.Since(m.began); early > shortestPause {
			if err := m.pause(early); err != nil {
				return 0, err
			}
		}
	}
	if time.Since(m.told) > time.Second {
		m.told = time.Now()
		j.tell(j.copying(m.began, m.bytes))
	}
	return len(p), nil
}
