package rows

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

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// Copy copies the rows of a shard to another host.
type Copy struct {
	Schema         string
	Source, Target string                // the names of the hosts, for errors
	Limit          func(bytes int) error // waits before each part of the rows is sent, see [Limit]; nil for no limit
}

// tableToCopy is a table, with the columns that are not generated, as SQL.
type tableToCopy struct{ Name, Columns string }

func (c Copy) tables(ctx context.Context, from *pgx.Conn, which Tables) ([]tableToCopy, error) {
	const query = `
		SELECT c.relname::text, coalesce('(' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attnum IS NOT NULL) || ')', '')
		FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND position(c.relpersistence IN $2) > 0 GROUP BY 1 ORDER BY 1`
	found, err := from.Query(ctx, query, c.Schema, which)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[tableToCopy])
}

// Locked copies the rows of tables that a session has locked, and deletes those that an earlier try has copied. It
// copies in one transaction of the target, and calls last at its end.
func (c Copy) Locked(ctx context.Context, from, target *pgx.Conn, which Tables, last func(to pgx.Tx) error) error {
	if err := Empty(ctx, target, c.Schema, which); err != nil {
		return err
	}
	tables, err := c.tables(ctx, from, which)
	if err != nil {
		return err
	}
	return session.InTx(ctx, target, func(to pgx.Tx) error {
		if _, err := to.Exec(ctx, asReplica); err != nil {
			return err
		}
		err := lifting(ctx, to, c.Schema, which, func() error {
			for _, t := range tables {
				if err := c.table(ctx, from, to, t); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return last(to)
	})
}

// Snapshot copies the rows of logged tables in an exported snapshot. It uses a transaction of the source for each
// table, which blocks a TRUNCATE only until the table is copied. lockTimeout is the lock_timeout of each; retry calls
// its argument again while it fails because of a lock.
func (c Copy) Snapshot(ctx context.Context, snapshot string, from *pgx.Conn, to pgx.Tx, lockTimeout time.Duration, retry func(func() error) error) error {
	begin := fmt.Sprintf("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '%s'; SET LOCAL lock_timeout = %d", session.Quoted(snapshot), lockTimeout.Milliseconds())
	if _, err := to.Exec(ctx, asReplica); err != nil {
		return err
	}
	if err := session.Run(ctx, from, begin); err != nil {
		return err
	}
	tables, err := c.tables(ctx, from, Logged)
	if err == nil {
		err = session.Run(ctx, from, "COMMIT")
	}
	if err != nil {
		return err
	}
	return lifting(ctx, to, c.Schema, Logged, func() error {
		for _, t := range tables {
			err := retry(func() error {
				return session.Run(ctx, from, begin+"; LOCK TABLE ONLY "+session.Name(c.Schema, t.Name)+" IN ACCESS SHARE MODE")
			})
			if err == nil {
				err = c.table(ctx, from, to, t)
			}
			if err == nil {
				err = session.Run(ctx, from, "COMMIT")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// asReplica makes a transaction skip triggers and foreign keys: the rows have passed them on the source.
const asReplica = "SET LOCAL session_replication_role = replica"

// table copies the rows of a table that the session from sees.
func (c Copy) table(ctx context.Context, from *pgx.Conn, to pgx.Tx, t tableToCopy) error {
	text := session.Name(c.Schema, t.Name) + " " + t.Columns
	reader, writer := io.Pipe()
	read := make(chan error, 1)
	go func() {
		buffer := bufio.NewWriterSize(limited{writer, c.Limit}, streamBuffer)
		_, err := from.PgConn().CopyTo(ctx, buffer, "COPY "+text+" TO STDOUT")
		if err == nil {
			err = buffer.Flush()
		}
		_ = writer.CloseWithError(err) // never fails
		read <- err
	}()
	_, err := to.Conn().PgConn().CopyFrom(ctx, reader, "COPY "+text+" FROM STDIN")
	_ = reader.CloseWithError(errTargetFailed) // never fails
	switch readErr := <-read; {
	case readErr != nil && !errors.Is(readErr, errTargetFailed): // the target reports a cancellation instead
		return fmt.Errorf("copying %s, on %s: %w", t.Name, c.Source, readErr)
	case err != nil:
		return fmt.Errorf("copying %s, on %s: %w", t.Name, c.Target, err)
	}
	return nil
}

// errTargetFailed ends the source's part of a copy.
var errTargetFailed = errors.New("the target takes no more")

// streamBuffer is the number of bytes that go from one session to the other at a time: single rows would be much slower.
const streamBuffer = 8 << 10

// limited writes up to streamBuffer bytes at a time, and waits before each.
type limited struct {
	io.Writer

	wait func(bytes int) error // nil for no limit
}

func (l limited) Write(p []byte) (n int, err error) {
	if l.wait == nil {
		return l.Writer.Write(p)
	}
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

// Limit returns a [Copy.Limit] for a rate in bytes a second; 0 for no limit.
func Limit(ctx context.Context, bytes int64) func(bytes int) error {
	if bytes <= 0 {
		return nil
	}
	limiter := rate.NewLimiter(rate.Limit(bytes), streamBuffer)
	return func(bytes int) error { return limiter.WaitN(ctx, bytes) }
}
