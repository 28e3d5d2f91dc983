package moves

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// errorsKept is the number of callers whose first error is kept.
const errorsKept = 3

// check checks that each acknowledged row exists, and deletes the callers' rows, so that the next move has the same size.
func (r *rounds) check(ctx context.Context, l *load) error {
	m, source, _, err := r.placement(ctx)
	if err != nil {
		return err
	}
	if _, err := move.Clean(ctx, m, shards.SetOf(moved)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, source.ConnString())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	found, err := r.written(ctx, conn, schema)
	if err != nil {
		return err
	}
	for t := range r.tables {
		for _, statement := range []string{`DELETE FROM %s.%s WHERE writer > 0`, `VACUUM ANALYZE %s.%s`} {
			if _, err := conn.Exec(ctx, fmt.Sprintf(statement, schema, table(t))); err != nil {
				return err
			}
		}
	}
	r.figure.add(l.shard, found)
	for _, c := range l.others {
		r.figure.OtherFailed += c.failed
	}
	return nil
}

// row is a row of a caller: the writer, from 1 up, and the number of its call.
type row struct{ writer, n int }

// written returns how often each row of the callers exists in a schema.
func (c *cluster) written(ctx context.Context, conn *pgx.Conn, schema string) (map[row]int, error) {
	found := map[row]int{}
	for t := range c.tables {
		rows, err := conn.Query(ctx, `SELECT writer, n FROM `+schema+`.`+table(t)+` WHERE writer > 0`)
		if err != nil {
			return nil, err
		}
		var key row
		if _, err := pgx.ForEachRow(rows, []any{&key.writer, &key.n}, func() error { found[key]++; return nil }); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// add counts the calls of callers, a writer and a reader in turn. found has how often each row exists.
func (f *Counts) add(callers []*caller, found map[row]int) {
	for _, times := range found {
		if times > 1 {
			f.Doubled++
		}
	}
	for i, c := range callers {
		f.Calls, f.Failed, f.Falling = f.Calls+c.calls, f.Failed+c.failed, f.Falling+c.falling
		if c.err != nil && len(f.Errors) < errorsKept {
			f.Errors = append(f.Errors, c.err.Error())
		}
		for _, n := range c.written {
			f.Written++
			if found[row{i/2 + 1, n}] == 0 {
				f.Lost++
			}
		}
	}
}
