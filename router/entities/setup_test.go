package entities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/internal/routertest"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(routertest.Main(m, nil, nil)) }

const shardCount = 4

var (
	byUser = entities.IndexDefinition{Name: "index_user_id", Properties: []entities.Property{
		{Name: "user_id", Type: entities.Text}, {Name: "published", Type: entities.Int},
	}}
	byLink  = entities.IndexDefinition{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}}
	byEmail = entities.IndexDefinition{Name: "index_email", Properties: []entities.Property{{Name: "email", Type: entities.Text}}, Unique: true}
	public  = entities.IndexDefinition{
		Name: "index_public", Properties: []entities.Property{{Name: "score", Type: entities.Float}}, Where: map[string]any{"public": true},
	}
	definition = entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{byUser, byLink, byEmail, public}}
)

type bundle struct {
	*entities.Store
	r *router.Router
}

// setup returns a store over four shards on two hosts. The shards have the indexes of definition, and d may have fewer.
func setup(t *testing.T, d entities.Definition) (*bundle, context.Context) {
	t.Helper()
	return setupOf(t, definition, d)
}

// setupOf returns a store with a definition, over shards that have other indexes, too.
func setupOf(t *testing.T, migrated, d entities.Definition) (*bundle, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), routertest.Limit)
	t.Cleanup(cancel)
	m, err := shardtest.MapConfig(shardCount, []shards.Host{
		{Name: "pg-a", DSN: routertest.CreateDatabase(ctx, t)}, {Name: "pg-b", DSN: routertest.CreateDatabase(ctx, t)},
	}).Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Up(ctx, migrate.Config{Map: m, Files: fstest.MapFS{"001_entities.sql": {Data: []byte(migrated.Migration())}}}); err != nil {
		t.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: router.Failover{FailAfter: routertest.Limit}, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = 8
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	b := &bundle{r: r}
	if len(d.Indexes) < len(migrated.Indexes) {
		b.each(ctx, t, `update entity_indexes set required = name = 'entities', filled = name = 'entities'`)
	}
	b.Store = b.open(t, d)
	return b, ctx
}

// open returns another store over the same shards.
func (b *bundle) open(t *testing.T, d entities.Definition) *entities.Store {
	t.Helper()
	s, err := entities.Open(t.Context(), b.r, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// age makes all work due.
func (b *bundle) age(ctx context.Context, t *testing.T) {
	t.Helper()
	b.each(ctx, t, `update entity_work set begun = now() - interval '1 hour', taken = null where version in (select version from entity_work for update skip locked)`)
}

// settle runs a cleaner on the work of writers that died.
func (b *bundle) settle(ctx context.Context, t *testing.T) {
	t.Helper()
	b.age(ctx, t)
	if err := b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1}); err != nil {
		t.Fatal(err)
	}
}

// walk compares all entities and index rows.
func (b *bundle) walk(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: 1_000_000}); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) each(ctx context.Context, t *testing.T, query string) {
	t.Helper()
	if err := many.Each(ctx, b.r, b.r.All(), many.Options{}, func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, query)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func newID() (id entities.ID) {
	for i := range id {
		id[i] = byte(rand.IntN(256))
	}
	return id
}

func body(t *testing.T, fields map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func put(ctx context.Context, t *testing.T, s *entities.Store, id entities.ID, fields map[string]any) {
	t.Helper()
	if err := s.Put(ctx, id, body(t, fields)); err != nil {
		t.Fatal(err)
	}
}

// agree fails the test unless the rows of all indexes are exactly those that SQL finds in the entities, and no work is left.
func (b *bundle) agree(ctx context.Context, t *testing.T) {
	t.Helper()
	read := func(query string) []string {
		all, err := many.Collect(ctx, b.r, b.r.All(), many.Query[string]{SQL: query, Scan: pgx.RowTo[string]})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
	text := func(p string) string {
		return fmt.Sprintf("case jsonb_typeof(body->'%[1]s') when 'string' then body->>'%[1]s' end", p)
	}
	number := func(p string) string {
		return fmt.Sprintf("case jsonb_typeof(body->'%[1]s') when 'number' then (body->>'%[1]s')::float8 end", p)
	}
	whole := func(p string) string { // a shards.ID is a string
		return fmt.Sprintf("case when body->>'%[1]s' ~ '^(0|-?[1-9][0-9]{0,18})$' then (body->>'%[1]s')::float8 else %[2]s end", p, number(p))
	}
	for table, columns := range map[string][]string{
		"index_user_id": {text("user_id"), whole("published")}, "index_link": {text("link")}, "index_email": {text("email")},
		"index_public": {"case when body->'public' = 'true' then " + number("score") + " end"},
	} {
		names := map[string]string{"index_user_id": "user_id, published::float8", "index_link": "link", "index_email": "email", "index_public": "score"}
		var present []string
		for _, c := range columns {
			present = append(present, c+" is not null")
		}
		got := read(fmt.Sprintf("select row(%s, entity_id)::text from %s", names[table], table))
		want := read(fmt.Sprintf("select row(%s, id)::text from entities where %s", strings.Join(columns, ", "), strings.Join(present, " and ")))
		if !slices.Equal(got, want) {
			t.Errorf("%s has %d rows, expected %d:\n%v\n%v", table, len(got), len(want), got, want)
		}
	}
	if left := read("select row(w.*)::text from entity_work w"); len(left) > 0 {
		t.Errorf("work is left: %v", left)
	}
}

// soon waits for a condition.
func soon(ctx context.Context, t *testing.T, what func() bool) {
	t.Helper()
	for !what() {
		select {
		case <-ctx.Done():
			t.Fatal("the condition did not hold in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// field returns a text field of a body.
func field(text []byte, name string) string {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err.Error()
	}
	s, _ := fields[name].(string)
	return s
}
