package objects_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

func openMod(t *testing.T, r *router.Router, of objects.ModTable) *objects.Mod[string] {
	t.Helper()
	m, err := objects.OpenMod[string](r, of)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMod(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	names := openMod(t, r, byFacebook)
	key := []byte{0, 255, '\n'}
	if _, err := names.Get(ctx, key); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("got %v, expected ErrNotFound", err)
	}
	var all sync.WaitGroup
	made := make(chan string, 8)
	for i := range 8 {
		all.Go(func() {
			if _, isNew, err := names.PutIfAbsent(ctx, key, fmt.Sprint(i)); err != nil {
				t.Error(err)
			} else if isNew {
				made <- fmt.Sprint(i)
			}
		})
	}
	all.Wait()
	item, err := names.Get(ctx, key)
	if err != nil || len(made) != 1 || <-made != item.Value {
		t.Fatalf("got %v, %v, and not exactly one made it", item, err)
	}
	next, err := names.Swap(ctx, key, item.Version, "ben")
	if err != nil || next.Value != "ben" || next.Version == item.Version {
		t.Errorf("got %v, %v", next, err)
	}
	if _, err := names.Swap(ctx, key, item.Version, "bob"); !errors.Is(err, objects.ErrChanged) {
		t.Errorf("got %v, expected ErrChanged", err)
	}
	if err := names.Delete(ctx, key, item.Version); !errors.Is(err, objects.ErrChanged) {
		t.Errorf("got %v, expected ErrChanged", err)
	}
	if err := names.Delete(ctx, key, next.Version); err != nil {
		t.Error(err)
	}
	if again, isNew, err := names.PutIfAbsent(ctx, key, "new"); err != nil || !isNew || again.Version == item.Version || again.Version == next.Version {
		t.Errorf("got %v, %v, %v, expected a version that no row had before", again, isNew, err)
	}
	for _, value := range []string{"put", "put again"} {
		if item, err := names.Put(ctx, key, value); err != nil || item.Value != value {
			t.Errorf("got %v, %v", item, err)
		}
	}
	var field *shards.FieldError
	if _, err := names.Put(ctx, make([]byte, objects.MaxKey+1), "x"); !errors.As(err, &field) || field.Field != "key" {
		t.Errorf("got %v for a key that is too long", err)
	}
	if _, err := names.Put(ctx, make([]byte, objects.MaxKey), "x"); err != nil {
		t.Errorf("got %v for the longest key", err)
	}
	for _, number := range []int{0, shardCount + 1} {
		if _, err := objects.OpenMod[string](r, objects.ModTable{Name: byFacebook.Name, Shards: number}); !isFieldError(err) {
			t.Errorf("%d shards of %d: got %v", number, shardCount, err)
		}
	}
	if item, err := names.Put(ctx, nil, "x"); err != nil {
		t.Error(err)
	} else if err := names.Delete(ctx, nil, item.Version); err != nil {
		t.Errorf("an empty key: got %v", err)
	}
}

// modCalls are those that read or write the row of a key.
var modCalls = map[string]func(context.Context, *objects.Mod[string], []byte, int64) error{
	"get": func(ctx context.Context, m *objects.Mod[string], key []byte, _ int64) error {
		_, err := m.Get(ctx, key)
		return err
	},
	"put": func(ctx context.Context, m *objects.Mod[string], key []byte, _ int64) error {
		_, err := m.Put(ctx, key, "other")
		return err
	},
	"put if absent": func(ctx context.Context, m *objects.Mod[string], key []byte, _ int64) error {
		_, _, err := m.PutIfAbsent(ctx, key, "other")
		return err
	},
	"swap": func(ctx context.Context, m *objects.Mod[string], key []byte, version int64) error {
		_, err := m.Swap(ctx, key, version, "other")
		return err
	},
	"delete": func(ctx context.Context, m *objects.Mod[string], key []byte, version int64) error {
		return m.Delete(ctx, key, version)
	},
}

// expectRefused checks that Postgres refuses each call of a program with another number of shards, and what the error says.
func expectRefused(ctx context.Context, t *testing.T, m *objects.Mod[string], found, expected int, key []byte, version int64) {
	t.Helper()
	for what, call := range modCalls {
		checkRefused(t, what, call(ctx, m, key, version), found, expected)
	}
}

func checkRefused(t *testing.T, what string, err error, found, expected int) {
	t.Helper()
	want := fmt.Sprintf("persons_by_facebook.shards: %d; expected %d, as the table has: shard ", found, expected)
	if !isFieldError(err) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s: got %v, expected %s…", what, err, want)
	}
}

// modRows counts the rows in all shards.
func modRows(ctx context.Context, t *testing.T, r *router.Router) (rows int) {
	t.Helper()
	for n := range shards.Number(shardCount) {
		var here int
		if err := shardOf(t, r, n).QueryRow(ctx, `select count(*) from persons_by_facebook`).Scan(&here); err != nil {
			t.Fatal(err)
		}
		rows += here
	}
	return rows
}

func shardOf(t *testing.T, r *router.Router, n shards.Number) router.Shard {
	t.Helper()
	shard, err := r.ForShard(n)
	if err != nil {
		t.Fatal(err)
	}
	return shard
}

// A program with another number of shards than the table neither reads nor writes a row, whether the key is in the same shard by
// both numbers or not.
func TestModOfOtherShards(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	right := openMod(t, r, byFacebook)
	const count = 20
	for i := range count {
		key := fmt.Append(nil, i)
		item, err := right.Put(ctx, key, "right")
		if err != nil {
			t.Fatal(err)
		}
		for number := 1; number < shardCount; number++ {
			wrong := openMod(t, r, objects.ModTable{Name: byFacebook.Name, Shards: number})
			expectRefused(ctx, t, wrong, number, shardCount, key, item.Version)
			shard, err := wrong.Shard(key)
			if err != nil {
				t.Fatal(err)
			}
			for what, call := range modCalls {
				err := shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return call(ctx, within(t, wrong, tx), key, item.Version) })
				checkRefused(t, what+" in a transaction", err, number, shardCount)
			}
		}
		if got, err := right.Get(ctx, key); err != nil || got != item {
			t.Errorf("key %d: got %v, %v, expected %v", i, got, err, item)
		}
	}
	if rows := modRows(ctx, t, r); rows != count {
		t.Errorf("%d rows of %d keys", rows, count)
	}
}

// Sessions that have prepared the statements are refused, too, once the table is another.
func TestModMadeAgain(t *testing.T) {
	t.Parallel()
	const half = shardCount / 2
	other := objects.ModTable{Name: byFacebook.Name, Shards: half}
	drop := `drop table ` + byFacebook.Name + `; `
	create, _, _ := strings.Cut(objects.Tables{Mods: []objects.ModTable{other}}.Migration(), "----")
	for what, change := range map[string]string{
		"dropped and created": drop + create,
		"renamed":             fmt.Sprintf(`alter table %s rename column key_of_%d to key_of_%d`, byFacebook.Name, shardCount, half),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, ctx := setup(t)
			m := openMod(t, r, byFacebook)
			key := []byte("x")
			var item objects.Item[string]
			for range 8 { // more often than Postgres makes a plan for the arguments
				for what, call := range modCalls {
					if err := call(ctx, m, key, item.Version); err != nil && !errors.Is(err, objects.ErrNotFound) && !errors.Is(err, objects.ErrChanged) {
						t.Fatal(what, err)
					}
				}
				var err error
				if item, err = m.Put(ctx, key, "x"); err != nil {
					t.Fatal(err)
				}
			}
			for n := range shards.Number(shardCount) {
				if _, err := shardOf(t, r, n).Exec(ctx, change); err != nil {
					t.Fatal(err)
				}
			}
			before := modRows(ctx, t, r)
			expectRefused(ctx, t, m, shardCount, half, key, item.Version)
			if rows := modRows(ctx, t, r); rows != before {
				t.Errorf("%d rows, %d before", rows, before)
			}
			if _, err := openMod(t, r, other).Put(ctx, []byte("new"), "x"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A transaction that holds the only connection does not wait for another without end: the error is Postgres's then.
func TestModOfOtherShardsWithOneConn(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	r, err := router.New(ctx, router.Config{Map: r.Map(), Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = 1
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	wrong := openMod(t, r, objects.ModTable{Name: byFacebook.Name, Shards: 1})
	err = shardOf(t, r, 0).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := within(t, wrong, tx).Put(ctx, []byte("x"), "x")
		return err
	})
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "42703" || !strings.Contains(err.Error(), "number of shards is unknown") || router.SafeToRetry(err) {
		t.Errorf("got %v", err)
	}
	if rows := modRows(ctx, t, r); rows != 0 {
		t.Errorf("%d rows", rows)
	}
}

// An error of a table that is no such table at all stays as it is.
func TestModWithoutItsColumns(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	m := openMod(t, r, byFacebook)
	key := []byte("x")
	shard, err := m.Shard(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		`alter table persons_by_facebook rename column version to other`,
		`alter table persons_by_facebook rename column key_of_4 to key`,
		`drop table persons_by_facebook`,
	} {
		if _, err := shard.Exec(ctx, change); err != nil {
			t.Fatal(err)
		}
		for what, call := range modCalls {
			if err := call(ctx, m, key, 1); err == nil || isFieldError(err) || errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrChanged) {
				t.Errorf("after %s, %s: got %v, expected Postgres's error", change, what, err)
			}
		}
	}
}
