package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// The entry between two statements fails with 42602 if the first has moved the path. The error says so, and does not if a
// statement of the caller's fails with 42602 by itself.
func TestErrorAfterThePathHasMoved(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `create function public.f() returns int `+wanderers["set_config"])
	s := b.shard(t, 1)
	batch := func(sender interface {
		SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	}, texts []string,
	) error {
		var batch pgx.Batch
		for _, text := range texts {
			batch.Queue(text)
		}
		return sender.SendBatch(ctx, &batch).Close()
	}
	ways := map[string]func(texts []string) error{
		"Exec":  func(texts []string) error { return second(s.Exec(ctx, strings.Join(texts, "; "))) },
		"batch": func(texts []string) error { return batch(s, texts) },
		"Exec in a transaction": func(texts []string) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return second(tx.Exec(ctx, strings.Join(texts, "; "))) })
		},
		"batch in a transaction": func(texts []string) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return batch(tx, texts) })
		},
	}
	for _, c := range []struct {
		texts []string
		moved bool
	}{
		{[]string{`select ('a..' || 'b')::regclass`}, false},
		{[]string{`select 1`, `select ('a..' || 'b')::regclass`, `select 2`}, false},
		{[]string{`select 1`, `select ('a..' || 'b')::regclass`}, false},
		{[]string{`select public.f()`, `select title from photos`}, true},
		{[]string{`select 1`, `select public.f()`, `select ('a..' || 'b')::regclass`}, true},
	} {
		for name, way := range ways {
			err := way(c.texts)
			if isSQLState(err, "42602") != nil || strings.Contains(err.Error(), "has changed search_path") != c.moved {
				t.Errorf("%s of %q: %v", name, c.texts, err)
			}
			if router.SafeToRetry(err) {
				t.Errorf("%s of %q: %v is said to be safe to retry", name, c.texts, err)
			}
		}
	}
}
