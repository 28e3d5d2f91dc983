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
	m, home, _, err := r.home(ctx)
	if err != nil {
		return err
	}
	if _, err := move.Clean(ctx, m, shards.SetOf(moves)); err != nil {
		return err
	}
	there := map[[2]int32]int{}
	conn, err := r.connect(ctx, home)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for t := range r.tables {
		rows, err := conn.Query(ctx, `SELECT writer, n FROM `+schema+`.`+table(t)+` WHERE writer > 0`)
		if err != nil {
			return err
		}
		var key [2]int32
		if _, err := pgx.ForEachRow(rows, []any{&key[0], &key[1]}, func() error { there[key]++; return nil }); err != nil {
			return err
		}
		for _, statement := range []string{`DELETE FROM %s.%s WHERE writer > 0`, `VACUUM ANALYZE %s.%s`} {
			if _, err := conn.Exec(ctx, fmt.Sprintf(statement, schema, table(t))); err != nil {
				return err
			}
		}
	}
	r.count(l, there)
	return nil
}

// count adds the calls to the figure. there has the number of copies of each row, by writer and number.
func (r *rounds) count(l *load, there map[[2]int32]int) {
	f := r.figure
	for _, times := range there {
		if times > 1 {
			f.Doubled++
		}
	}
	for i, c := range l.shard {
		f.Calls, f.Failed, f.Falling = f.Calls+c.calls, f.Failed+c.failed, f.Falling+c.falling
		if c.err != nil && len(f.Errors) < errorsKept {
			f.Errors = append(f.Errors, c.err.Error())
		}
		for _, n := range c.acked {
			f.Written++
			if there[[2]int32{int32(i/2 + 1), n}] == 0 {
				f.Lost++
			}
		}
	}
	for _, c := range l.others {
		f.OtherFailed += c.failed
	}
}
