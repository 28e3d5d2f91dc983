package move_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

var (
	storeTypes  = []shards.ObjectType{{Name: "pin", Number: 1}, {Name: "board", Number: 2}}
	storeTables = objects.Tables{Types: []string{"pin", "board"}, Mappings: []objects.Relation{{From: "board", To: "pin"}}}
	byLink      = entities.Definition{Shards: 4, Indexes: []entities.IndexDefinition{
		{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}},
	}}
	storeFiles = fstest.MapFS{
		"001_objects.sql":  {Data: []byte(storeTables.Migration())},
		"002_entities.sql": {Data: []byte(byLink.Migration())},
	}
)

type count struct {
	N int `json:"n"`
}

// Objects and entities are written and read, and a cleaner runs, while shard 1 moves there and back and new shards are
// opened. No call fails, nothing is lost or doubled, and in the end index and entities agree.
func TestStoresBehindAMove(t *testing.T) {
	t.Parallel()
	config := shardtest.New(t, shardtest.Config{Shards: 4, Migrations: storeFiles}).Map.Config()
	config.Types, config.Strategy.Of = storeTypes, 4
	b := setupOn(t, config)
	r, err := router.New(t.Context(), router.Config{Maps: mapstore.NewSource(mapstore.SourceConfig{Store: b.store})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	store, err := entities.Open(t.Context(), r, byLink)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, stop: make(chan struct{})}
	run := func(call func(ctx context.Context) error) {
		c.callers.Go(func() {
			c.loop(func(ctx context.Context, _ router.Shard) (int64, error) { return 0, call(ctx) })
		})
	}
	pins := newPinWriters(t, r)
	run(pins.create)
	run(pins.update)
	run(pins.update)
	var writers []*entityWriter
	for n := range byte(3) {
		writers = append(writers, &entityWriter{store: store, n: n, links: map[entities.ID]string{}})
		run(writers[n].call)
	}
	c.callers.Go(func() {
		for { // each time to its end: nothing of it is under way afterwards
			select {
			case <-c.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if err := store.Clean(t.Context(), entities.CleanOptions{Once: true}); err != nil {
				t.Errorf("the cleaner: %v", err)
				return
			}
		}
	})

	c.some("calls at first")
	for _, to := range []string{"pg-b", "pg-a"} {
		b.cfg.Map, b.cfg.To = b.load(), to
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		c.some("calls with the shard on " + to)
		if to == "pg-b" {
			b.open(2)
			eventually(t, "objects in new shards", func() bool { return pins.inNew.Load() > 0 })
		}
	}
	close(c.stop)
	c.callers.Wait()
	pins.check(t)
	sum := 0
	for _, w := range writers {
		sum += len(w.links)
		w.check(t)
	}

	// What writers have left to a cleaner, because this machine was busy, is due at once.
	everywhere := func(query string) (sum int) {
		t.Helper()
		for n := range shards.Number(byLink.Shards) {
			s, err := r.ForShard(n)
			if err != nil {
				t.Fatal(err)
			}
			tag, err := s.Exec(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			sum += int(tag.RowsAffected())
		}
		return sum
	}
	everywhere(`update entity_work set begun = now() - interval '1 hour', taken = null`)
	if err := store.Clean(t.Context(), entities.CleanOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	if left := everywhere(`select from entity_work`); left > 0 {
		t.Errorf("%d works are left", left)
	}
	second, err := entities.Open(t.Context(), r, byLink)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Fill(t.Context(), "index_link", entities.CleanOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := second.Stats(); int(s.Filled) != sum || int(s.Checked) != sum || s.Added > 0 || s.Removed > 0 {
		t.Errorf("%d entities are there, and Fill has found %+v", sum, s)
	}
}

// open opens more shards on pg-b, as kiloshard open does.
func (b *bundle) open(more int) {
	b.t.Helper()
	now := b.load()
	c := now.Config()
	set := shards.SetOfRanges(shards.Range{First: shards.Number(now.Len()), Last: shards.Number(now.Len() + more - 1)})
	c.Shards += more
	c.Placement = append(c.Placement, shards.Placement{Shards: set, Host: "pg-b"})
	next, err := c.Map()
	if err == nil {
		_, err = provision.Create(b.t.Context(), provision.CreateConfig{Map: next})
	}
	if err == nil {
		_, err = migrate.Up(b.t.Context(), migrate.Config{Map: next, Shards: set, Files: storeFiles})
	}
	if err == nil {
		_, err = b.store.Swap(b.t.Context(), now.Version(), mapstore.Change{Config: c, By: "test"})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if t.Failed() || time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// pinWriters make pins in all shards, which a board in shard 1 has, and count in one pin of that shard.
type pinWriters struct {
	pins    *objects.Type[count]
	has     *objects.Mapping
	board   shards.ID
	counter shards.ID
	counted atomic.Int64
	inNew   atomic.Int64

	made []shards.ID // by the one who creates
}

func newPinWriters(t *testing.T, r *router.Router) *pinWriters {
	t.Helper()
	p := &pinWriters{}
	s, err := r.ForShard(1)
	if err != nil {
		t.Fatal(err)
	}
	if p.pins, err = objects.Open(r, "pin", objects.Options[count]{}); err != nil {
		t.Fatal(err)
	}
	if p.has, err = objects.OpenMapping(r, objects.Relation{From: "board", To: "pin"}); err != nil {
		t.Fatal(err)
	}
	boards, err := objects.Open(r, "board", objects.Options[count]{})
	if err != nil {
		t.Fatal(err)
	}
	board, err := boards.CreateIn(t.Context(), s, count{})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := p.pins.CreateNear(t.Context(), board.ID, count{})
	if err != nil {
		t.Fatal(err)
	}
	p.board, p.counter = board.ID, counter.ID
	return p
}

func (p *pinWriters) create(ctx context.Context) error {
	n := len(p.made)
	pin, err := p.pins.Create(ctx, count{n})
	if err != nil {
		return err
	}
	p.made = append(p.made, pin.ID)
	if objects.Layout.Parts(pin.ID).Shard >= 4 {
		p.inNew.Add(1)
	}
	if _, _, err := p.has.Add(ctx, p.board, pin.ID, int64(n)); err != nil {
		return err
	}
	found, rows, err := objects.Join(ctx, p.has, p.pins, p.board, objects.Page{Limit: 10, Falling: true})
	if err != nil {
		return err
	}
	for i, o := range found {
		if o.Fields.N != n-i || o.ID != p.made[n-i] {
			return fmt.Errorf("pin %d of the page is %+v, expected number %d", i, o, n-i)
		}
	}
	if len(found) != min(10, n+1) || len(rows) != len(found) {
		return fmt.Errorf("a page of %d pins and %d rows", len(found), len(rows))
	}
	return nil
}

func (p *pinWriters) update(ctx context.Context) error {
	_, err := p.pins.Update(ctx, p.counter, func(c *count) error { c.N++; return nil })
	if err == nil {
		p.counted.Add(1)
	}
	return err
}

func (p *pinWriters) check(t *testing.T) {
	t.Helper()
	if o, err := p.pins.Get(t.Context(), p.counter); err != nil || int64(o.Fields.N) != p.counted.Load() {
		t.Errorf("%d after %d updates, %v", o.Fields.N, p.counted.Load(), err)
	}
	all, err := p.pins.GetMany(t.Context(), p.made)
	if err != nil || len(all) != len(p.made) {
		t.Errorf("%d pins of %d, %v", len(all), len(p.made), err)
	}
	if !slices.IsSortedFunc(all, func(a, b objects.Object[count]) int { return a.Fields.N - b.Fields.N }) {
		t.Error("pins have changed")
	}
	if n, err := p.has.Count(t.Context(), p.board); err != nil || n != len(p.made) {
		t.Errorf("the board has %d pins of %d, %v", n, len(p.made), err)
	}
}

// entityWriter writes entities of its own, over all shards.
type entityWriter struct {
	store *entities.Store
	n     byte
	calls int
	links map[entities.ID]string
}

func (w *entityWriter) call(ctx context.Context) error {
	w.calls++
	var id entities.ID
	id[0] = w.n
	binary.BigEndian.PutUint64(id[8:], uint64(w.calls%30))
	if _, there := w.links[id]; there && w.calls%7 == 0 {
		delete(w.links, id)
		return indexed(w.store.Delete(ctx, id))
	}
	link := fmt.Sprintf("http://%d/%d", w.n, w.calls%4)
	w.links[id] = link
	err := w.store.Put(ctx, id, fmt.Appendf(nil, `{"link": %q}`, link))
	if indexed(err) != nil {
		return err
	}
	found, queryErr := w.store.Index("index_link").GetAll(ctx, link, entities.Page{})
	if queryErr != nil {
		return queryErr
	}
	for _, e := range found {
		if w.links[e.ID] != link {
			return fmt.Errorf("a query for %s returns %x, which has %q", link, e.ID, w.links[e.ID])
		}
	}
	if err == nil && !slices.ContainsFunc(found, func(e entities.Entity) bool { return e.ID == id }) {
		return fmt.Errorf("%x is written, and a query for %s does not find it", id, link)
	}
	return nil
}

// indexed is an error, or nil for one that leaves index rows to the cleaner: this machine may be busy.
func indexed(err error) error {
	if errors.Is(err, entities.ErrNotIndexed) {
		return nil
	}
	return err
}

func (w *entityWriter) check(t *testing.T) {
	t.Helper()
	for id, link := range w.links {
		e, err := w.store.Get(t.Context(), id)
		if err != nil || string(e.Body) != fmt.Sprintf(`{"link": %q}`, link) {
			t.Errorf("entity %x is %s, %v, expected %s", id, e.Body, err, link)
		}
	}
}
