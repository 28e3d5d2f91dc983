package move

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// tableToCopy is a table, with those of its columns that are not generated, as SQL.
type tableToCopy struct{ Name, Columns string }

func tablesWith(ctx context.Context, from *pgx.Conn, schema string, which rows.Tables) ([]tableToCopy, error) {
	const query = `
		SELECT c.relname::text, coalesce('(' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attnum IS NOT NULL) || ')', '')
		FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND position(c.relpersistence IN $2) > 0 GROUP BY 1 ORDER BY 1`
	found, err := from.Query(ctx, query, schema, which)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[tableToCopy])
}

// copyAgain copies the rows of tables that from has locked in place of what an earlier try has copied, in a transaction of the target, which last ends.
func (j *job) copyAgain(ctx context.Context, from *pgx.Conn, which rows.Tables, limit func(bytes int) error, last func(to pgx.Tx) error) error {
	if err := j.empty(ctx, which); err != nil {
		return err
	}
	tables, err := tablesWith(ctx, from, j.Schema, which)
	if err != nil {
		return err
	}
	return session.InTx(ctx, j.to, func(to pgx.Tx) error {
		if _, err := to.Exec(ctx, heedNothing); err != nil {
			return err
		}
		err := j.lifting(ctx, to, which, func() error {
			for _, t := range tables {
				if err := j.copyTable(ctx, from, to, t, limit); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		j.event("copied")
		return last(to)
	})
}

// heedNothing has a transaction call no triggers, and check no foreign keys: the rows have met them on the source.
const heedNothing = "SET LOCAL session_replication_role = replica"

// empty removes what earlier tries have copied into tables.
func (j *job) empty(ctx context.Context, which rows.Tables) error {
	return session.InTx(ctx, j.to, func(to pgx.Tx) error {
		if _, err := to.Exec(ctx, heedNothing); err != nil {
			return err
		}
		_, err := to.Exec(ctx, truncateAll(j.Schema, which))
		return err
	})
}

// copyTable copies the rows of a table that a session sees.
func (j *job) copyTable(ctx context.Context, from *pgx.Conn, to pgx.Tx, t tableToCopy, limit func(bytes int) error) error {
	text := session.Name(j.Schema, t.Name) + " " + t.Columns
	reader, writer := io.Pipe()
	read := make(chan error, 1)
	go func() {
		buffer := bufio.NewWriterSize(limited{writer, limit}, streamBuffer)
		_, err := from.PgConn().CopyTo(ctx, buffer, "COPY "+text+" TO STDOUT")
		if err == nil {
			err = buffer.Flush()
		}
		_ = writer.CloseWithError(err) // never fails
		read <- err
	}()
	_, err := to.Conn().PgConn().CopyFrom(ctx, reader, "COPY "+text+" FROM STDIN")
	_ = reader.CloseWithError(errNoMore) // never fails
	switch readErr := <-read; {
	case readErr != nil && !errors.Is(readErr, errNoMore): // the target has been told of it, and calls it a cancellation
		return fmt.Errorf("copying %s, on %s: %w", t.Name, j.Source, readErr)
	case err != nil:
		return fmt.Errorf("copying %s, on %s: %w", t.Name, j.Target, err)
	}
	return nil
}

// errNoMore ends the source's part of a copy.
var errNoMore = errors.New("the target takes no more")

// streamBuffer is how many bytes go from one session to another at a time: each row by itself would cost more than it takes.
const streamBuffer = 8 << 10

// limited writes up to streamBuffer bytes at a time, and waits before each.
type limited struct {
	io.Writer
	wait func(bytes int) error
}

func (l limited) Write(p []byte) (n int, err error) {
	for part := range slices.Chunk(p, streamBuffer) {
		if err := l.wait(len(part)); err != nil {
			return n, err
		}
		written, err := l.Writer.Write(part)
		n += written
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// limiter holds a copy up to the rate that is wanted.
func (j *job) limiter(ctx context.Context) func(bytes int) error {
	if j.cfg.Rate <= 0 {
		return unlimited
	}
	limiter := rate.NewLimiter(rate.Limit(j.cfg.Rate), streamBuffer)
	return func(bytes int) error { return limiter.WaitN(ctx, bytes) }
}

func unlimited(int) error { return nil }
