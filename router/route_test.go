package router_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})

	if s, err := b.ForKey(ctx, shards.NumberKey(shardCount+7)); err != nil || s.Number() != 7 || s.Schema() != "shard_00007" || s.Host().Name != "pg-a" {
		t.Errorf("key %d went to %s", shardCount+7, s)
	}
	if s, err := b.ForKey(ctx, shards.NumberKey(-1)); err != nil || s.String() != "shard 63 (shard_00063 on pg-b)" {
		t.Errorf("key -1 went to %s, %v", s, err)
	}
	if s, err := b.ForKey(ctx, shards.TextKey("-1")); err != nil || s.Number() != 63 {
		t.Errorf("key -1 as a text went to %s, %v", s, err)
	}
	if _, err := b.ForKey(ctx, shards.TextKey("alice")); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("a text that is no number: %v", err)
	}
	id, err := b.shard(t, 42).NextID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := b.ForID(id); err != nil || s.Number() != 42 {
		t.Errorf("ID %d of shard 42 went to %s: %v", id, s, err)
	}
	outside, err := b.Map().Layout().Compose(shards.Parts{Shard: shardCount})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ForID(outside); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("an ID of no shard: %v", err)
	}
	for _, n := range []shards.Number{-1, shardCount} {
		if _, err := b.ForShard(n); !errors.Is(err, shards.ErrNoShard) {
			t.Errorf("shard %d: %v", n, err)
		}
	}
}

func TestNextIDs(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	s := b.shard(t, 5)
	ids, err := s.NextIDs(ctx, 100)
	if err != nil || len(ids) != 100 {
		t.Fatalf("%d IDs: %v", len(ids), err)
	}
	for i, id := range ids {
		if n, err := b.Map().ForID(id); err != nil || n != 5 || i > 0 && id <= ids[i-1] {
			t.Errorf("ID %d of shard %d: %v", id, n, err)
		}
	}
	if ids, err := s.NextIDs(ctx, 0); err != nil || len(ids) != 0 {
		t.Errorf("no IDs: %v, %v", ids, err)
	}
}

func TestDecidingAllocatesNothing(t *testing.T) { // not parallel: AllocsPerRun does not allow it
	b, ctx := setup(t, options{})
	id, err := b.Map().Layout().Compose(shards.Parts{Milliseconds: 1, Shard: 3})
	if err != nil {
		t.Fatal(err)
	}
	key := int64(0)
	allocs := testing.AllocsPerRun(1000, func() {
		key++
		byKey, errKey := b.ForKey(ctx, shards.NumberKey(key))
		byID, err := b.ForID(id)
		if err != nil || errKey != nil || byID.Number() != 3 || byKey.Number() >= shardCount {
			t.Fatal("wrong shard")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	for _, s := range []shards.Strategy{
		{By: shards.Hash},
		{By: shards.Hash, Hash: shards.MD5},
		{By: shards.Hash, Hash: shards.Hex},
		{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.TextKey("")}, {From: shards.TextKey("m"), Shard: 1}}},
	} {
		r, _ := setup(t, options{on: b, config: func(c *shards.Config) { c.Strategy = s }})
		allocs := testing.AllocsPerRun(1000, func() {
			key++
			_, errKey := r.ForKey(ctx, shards.NumberKey(key))
			_, err := r.ForKey(ctx, shards.TextKey("alice@example.org"))
			if err != nil || errKey != nil {
				t.Fatal(err, errKey)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", s, allocs)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		dsn  string
		pool func(shards.Host, *pgxpool.Config) error
		want string
	}{
		{"no DSN at all", "nonsense", nil, "host pg-a: dsn: neither"},
		{"a password that breaks the URL", "postgres://app:sec/ret@db/app", nil, "host pg-a: dsn: neither"},
		{"an escape in the password", "postgres://app:sec%zzret@db/app", nil, "host pg-a: dsn: neither"},
		{"an unknown mode", "postgres://app:secret@db/app?default_query_exec_mode=fast", nil, "host pg-a: dsn: neither"},
		{"cache_describe", "postgres://app:secret@db/app?default_query_exec_mode=cache_describe", nil, "host pg-a: default_query_exec_mode: cache describe; expected cache_statement"},
		{"describe_exec", "postgres://app:secret@db/app?default_query_exec_mode=describe_exec", nil, "host pg-a: default_query_exec_mode: describe exec; expected cache_statement"},
		{
			"a hook that sets a mode", "postgres://app:secret@db/app",
			func(_ shards.Host, cfg *pgxpool.Config) error {
				cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
				return nil
			},
			"host pg-a: default_query_exec_mode: describe exec",
		},
		{
			"a hook that fails", "postgres://app:secret@db/app",
			func(shards.Host, *pgxpool.Config) error { return errors.New("no certificate") },
			"host pg-a: no certificate",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := router.New(t.Context(), router.Config{Map: oneShard(t, test.dsn), Pool: test.pool})
			if hostErr := new(shards.HostError); !errors.As(err, &hostErr) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "sec") {
				t.Errorf("the password is in %s", text)
			}
		})
	}
	for _, cfg := range []router.Config{
		{},
		{Map: oneShard(t, "postgres://db/app"), Statements: -1},
		{Map: oneShard(t, "postgres://db/app"), DirectoryCache: -1},
		{Map: oneShard(t, "postgres://db/app"), DirectoryMaxAge: -1},
	} {
		_, err := router.New(t.Context(), cfg)
		if fieldErr := new(shards.FieldError); !errors.As(err, &fieldErr) {
			t.Errorf("got %v, want a FieldError", err)
		}
	}
}

// oneShard returns a map of one shard on one host, pg-a.
func oneShard(t testing.TB, dsn string) *shards.Map {
	t.Helper()
	config := shards.Config{
		Cluster: "test", Shards: 1, Epoch: epoch,
		Hosts:     []shards.Host{{Name: "pg-a", DSN: dsn}},
		Placement: []shards.Placement{{Shards: shards.SetOf(0), Host: "pg-a"}},
	}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
