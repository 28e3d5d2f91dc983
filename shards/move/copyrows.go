package move

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"github.com/kiloshard/kiloshard/shards/move/rows"
)

// copyRows copies the rows of tables that a session sees. Neither triggers nor foreign keys are heeded on the target: the rows have met
// them on the source.
func (j *job) copyRows(ctx context.Context, from *pgx.Conn, to pgx.Tx, which rows.Tables) error {
	const query = `
		SELECT c.relname::text, coalesce('(' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attnum IS NOT NULL) || ')', '')
		FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND position(c.relpersistence IN $2) > 0 GROUP BY 1 ORDER BY 1`
	found, err := from.Query(ctx, query, j.Schema, which)
	if err != nil {
		return err
	}
	type table struct{ Name, Columns string }
	tables, err := pgx.CollectRows(found, pgx.RowToStructByPos[table])
	if err != nil {
		return err
	}
	if _, err := to.Exec(ctx, heedNothing); err != nil {
		return err
	}
	meter := j.meter(ctx)
	for _, t := range tables {
		text := name(j.Schema, t.Name) + " " + t.Columns
		if err := stream(ctx, from, "COPY "+text+" TO STDOUT", to.Conn(), "COPY "+text+" FROM STDIN", meter); err != nil {
			return fmt.Errorf("copying %s: %w", t.Name, err)
		}
	}
	return nil
}

// copyAgain copies the rows of tables in place of what an earlier try has copied.
func (j *job) copyAgain(ctx context.Context, from *pgx.Conn, to pgx.Tx, which rows.Tables) error {
	if err := j.empty(ctx, to, which); err != nil {
		return err
	}
	if err := j.copyRows(ctx, from, to, which); err != nil {
		return err
	}
	j.event("copied")
	return nil
}

// heedNothing has a transaction call no triggers, and check no foreign keys.
const heedNothing = "SET LOCAL session_replication_role = replica"

// empty removes what earlier tries have copied into tables.
func (j *job) empty(ctx context.Context, to pgx.Tx, which rows.Tables) error {
	if _, err := to.Exec(ctx, heedNothing); err != nil {
		return err
	}
	_, err := to.Exec(ctx, truncateAll(j.Schema, which))
	return err
}

// streamBuffer is how many bytes go from one session to another at a time: each row by itself would cost more than it takes.
const streamBuffer = 8 << 10

// stream copies from one session to another.
func stream(ctx context.Context, from *pgx.Conn, out string, to *pgx.Conn, in string, through *meter) error {
	reader, writer := io.Pipe()
	read := make(chan error, 1)
	go func() {
		buffer := bufio.NewWriterSize(io.MultiWriter(through, writer), streamBuffer)
		_, err := from.PgConn().CopyTo(ctx, buffer, out)
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

// meter is written to whatever is copied. It tells how far it is, and holds it up to the rate that is wanted.
type meter struct {
	job   *job
	wait  func(bytes int) error // up to streamBuffer of them
	began time.Time
	told  time.Time
	bytes int64
}

func (j *job) meter(ctx context.Context) *meter {
	limiter := rate.NewLimiter(rate.Inf, streamBuffer)
	if j.cfg.Rate > 0 {
		limiter.SetLimit(rate.Limit(j.cfg.Rate))
	}
	now := time.Now()
	return &meter{job: j, began: now, told: now, wait: func(bytes int) error { return limiter.WaitN(ctx, bytes) }}
}

func (m *meter) Write(p []byte) (int, error) {
	for part := range slices.Chunk(p, streamBuffer) {
		if err := m.wait(len(part)); err != nil {
			return 0, err
		}
	}
	m.bytes += int64(len(p))
	if time.Since(m.told) > time.Second {
		m.told = time.Now()
		e := Event{What: "copying", Bytes: min(m.bytes, m.job.bytes), Total: m.job.bytes}
		if e.Bytes > 0 {
			e.Left = time.Duration(float64(time.Since(m.began)) * float64(e.Total-e.Bytes) / float64(e.Bytes)).Round(time.Second)
		}
		m.job.tell(e)
	}
	return len(p), nil
}
