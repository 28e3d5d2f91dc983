package prove_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
)

// Writers and cleaners are killed all the time, shards move, and the clock of one host is ahead and steps. In every other round a
// host fails over to a standby that lacks its last writes. After each round a cleaner catches up, and then indexes and
// entities agree. Only after a failover two entities may have one value in a unique index; the cleaner reports them. make prove
// takes ten minutes for it, and KILOSHARD_TORTURE another time.
func TestTorture(t *testing.T) {
	t.Parallel()
	length, pause := 4*time.Second, 700*time.Millisecond
	if pgtest.Full() {
		length, pause = 10*time.Minute, 2*time.Second
	}
	if text := os.Getenv("KILOSHARD_TORTURE"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	const most = 100 * time.Second // for a round
	rounds := max(2, int((length+most-1)/most))
	c := start(t)
	f := c.fleet()
	reported := 0
	for round := range rounds {
		host := ""
		f.walk = -1 // which would hide that a writer or cleaner did not do its work
		if round%2 == 1 {
			host, f.walk = hostNames[round/2%2], 300
		}
		lost := c.round(f, length/time.Duration(rounds), pause, host)
		reported += c.settle(f, lost, pgtest.Full() && round == rounds-1)
		if problems := c.disagreements(); len(problems) > 0 {
			t.Fatalf("round %d, failover of %q: %d problems:\n%s", round, host, len(problems), strings.Join(problems, "\n"))
		}
	}
	t.Logf("%s: %d moves, %d failovers, %d steps of a clock, %d reported as taken; %v", length, c.moves, c.failovers, c.steps, reported, f)
	c.finds()
}

// round tortures for some time. If host is not empty, it fails over; the shards that it had then are returned.
func (c *cluster) round(f *fleet, length, pause time.Duration, host string) (lost []shards.Number) {
	c.t.Helper()
	for range 3 {
		f.start(writer)
	}
	f.start(cleaner)
	f.start(cleaner)
	done := make(chan struct{})
	var striking sync.WaitGroup
	striking.Go(func() { f.strike(pause, done) })
	defer striking.Wait()
	defer close(done)
	some := func() {
		c.t.Helper()
		begun := f.calls()
		c.eventually("writers write", func() bool { return f.calls() >= begun+100 })
	}
	some()
	end := time.Now().Add(length)
	for half := time.Now().Add(length / 2); time.Now().Before(end); {
		c.stepClock()
		c.moveOne()
		some()
		if host != "" && lost == nil && time.Now().After(half) {
			lost = c.failOver(host, some)
			some()
		}
	}
	if host != "" && lost == nil { // moves took all the time
		lost = c.failOver(host, some)
		some()
	}
	return lost
}

// settle kills the writers, and has cleaners finish. With patience it waits until they find that work is due, and else makes it
// due. It returns how many entities lacked a unique value, because another entity got it when the rows of some shards were lost.
func (c *cluster) settle(f *fleet, lost []shards.Number, patience bool) (reported int) {
	c.t.Helper()
	f.kill(writer)
	c.gone(applicationOf(writer))
	if !patience {
		c.collect(`update entity_work set begun = clock_timestamp() - interval '1 hour', taken = null returning 'due'`, func(shards.Number, string) {})
	}
	c.eventually("cleaners do all work", func() bool {
		left := 0
		c.collect(`select 'waits' from entity_work`, func(shards.Number, string) { left++ })
		return left == 0
	})
	f.stop(cleaner)
	c.gone(applicationOf(cleaner))
	if len(lost) == 0 { // a walk would find nothing but rows of writers that were stopped
		for _, problem := range c.disagreements() {
			if !strings.HasPrefix(problem, "no entity has ") {
				c.t.Errorf("before the walk: %s", problem)
			}
		}
	}
	first := c.walk()
	documents, _ := c.documents()
	for i, id := range ids {
		d, exists := documents[uuid(id)]
		if !exists || !slices.ContainsFunc(first, func(text string) bool { return strings.Contains(text, fmt.Sprintf("%x", id)) }) {
			continue
		}
		reported++
		if len(lost) == 0 {
			c.t.Errorf("entity %d has %s, which another entity has, without a failover", i, d.Email)
		}
		d.Email = ""
		text, _ := json.Marshal(d) // of plain values
		c.succeeds(func() error { return c.entities.Put(c.t.Context(), id, text) })
	}
	if again := c.walk(); len(again) > 0 {
		c.t.Errorf("the cleaner reports %q, after %q", again, first)
	}
	if lag, err := c.entities.Lag(c.t.Context()); err != nil || lag.Waiting > 0 {
		c.t.Errorf("lag %+v, %v", lag, err)
	}
	return reported
}

// walk compares all entities and index rows, as a cleaner does, and returns the entities without a row in a unique index.
func (c *cluster) walk() (reported []string) {
	c.t.Helper()
	c.succeeds(func() error {
		reported = nil
		var other error
		err := c.entities.Clean(c.t.Context(), entities.CleanOptions{Once: true, WalkPerSecond: 1_000_000, Log: func(err error) {
			reported = append(reported, err.Error())
			if !errors.Is(err, entities.ErrTaken) {
				other = err
			}
		}})
		return errors.Join(err, other)
	})
	return reported
}

// finds checks that disagreements finds each kind of damage.
func (c *cluster) finds() {
	c.t.Helper()
	for _, damage := range []struct{ query, want string }{
		{`delete from index_user_id where entity_id = (select min(entity_id::text)::uuid from index_user_id)`, "there is no index_user_id"},
		{`insert into index_link values ('nowhere', gen_random_uuid(), 1)`, "no entity has index_link"},
		{`insert into entity_work (version, entity_id, state) values (1, gen_random_uuid(), 'written')`, "pending"},
		{`update entity_indexes set definition = random()::text where name = 'index_link'`, "definition of index_link"},
		{`update entities set body = body || '{"email": "the same"}'`, " have the same"},
	} {
		c.collect(damage.query+` returning 'damaged'`, func(shards.Number, string) {})
		if found := c.disagreements(); !slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, damage.want) }) {
			c.t.Errorf("%s: not found in %q", damage.query, found)
		}
	}
}
