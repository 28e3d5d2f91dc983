package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// watchLimit limits how long watchers may take to receive a change; after it the change counts as missed.
const watchLimit = time.Minute

// pollChanges is how many changes of a file are watched: watchers read it only once a second.
const pollChanges = 5

// measureWatchers runs many watchers while the map changes: all on one store, then on several stores, and then while the
// store is killed.
func measureWatchers(ctx context.Context, b *mapBench, store MapStore) (err error) {
	writer, err := store.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	w := &mapWriter{store: writer, cluster: store.Config.Cluster}
	for _, connections := range []int{1, b.cfg.Connections} {
		what := fmt.Sprintf("%d watchers of %d stores", b.cfg.Watchers, connections)
		if connections == 1 {
			what = fmt.Sprintf("%d watchers of one store", b.cfg.Watchers)
		}
		b.progress(what)
		stores, closeAll, err := openMany(ctx, store, connections)
		if err != nil {
			return err
		}
		c := newCrowd(ctx, stores, b.cfg.Watchers)
		err = b.watchChanges(ctx, c, w, what)
		if err == nil && connections > 1 && b.kills(store) > 0 {
			err = b.watchKills(ctx, c, w, store, what)
		}
		c.leave()
		if err := errors.Join(err, closeAll()); err != nil {
			return err
		}
		if c.wrong > 0 {
			b.fail("%s: %d versions came twice, or an older one after a newer", what, c.wrong)
		}
	}
	return w.checkHistory(ctx, b)
}

// watchChanges measures how long each watcher takes to receive a change.
func (b *mapBench) watchChanges(ctx context.Context, c *crowd, w *mapWriter, what string) error {
	var sinceCall, sinceReturn []time.Duration
	changes := b.cfg.Changes
	if b.store == shards.StoreFile {
		changes = min(changes, pollChanges)
	}
	for i := range changes + 1 {
		call := time.Now()
		if err := w.change(ctx); err != nil {
			return err
		}
		answered := time.Now()
		arrivals, err := c.await(ctx, w.version)
		if err != nil {
			return err
		}
		if i == 0 {
			continue // some watchers may still be starting
		}
		for _, at := range arrivals {
			sinceCall = append(sinceCall, at.Sub(call))
			sinceReturn = append(sinceReturn, max(0, at.Sub(answered)))
		}
	}
	b.addTimes(what, "after the swap returned", sinceReturn)
	b.addTimes(what, "after it was called", sinceCall)
	return nil
}

// watchKills kills the store between changes, and measures how long all watchers take to receive the next change.
func (b *mapBench) watchKills(ctx context.Context, c *crowd, w *mapWriter, store MapStore, what string) error {
	what += ", killed"
	b.progress(what)
	var down, late []time.Duration
	kills := b.kills(store)
	for range kills {
		killed := time.Now()
		if err := store.Kill(ctx); err != nil {
			return err
		}
		if err := store.Restart(ctx); err != nil {
			return err
		}
		if err := w.changeAtLast(ctx); err != nil {
			return err
		}
		changed := time.Now()
		arrivals, err := c.await(ctx, w.version)
		if err != nil {
			return err
		}
		down = append(down, changed.Sub(killed))
		for _, at := range arrivals {
			late = append(late, max(0, at.Sub(changed)))
		}
	}
	b.add(what, "kills", float64(kills))
	b.addTimes(what, "from the kill until a swap is made", down)
	b.addTimes(what, "after that swap returned", late)
	b.add(what, "watchers at the last version", float64(c.at(w.version)))
	return nil
}

// mapWriter changes the map.
type mapWriter struct {
	store   mapstore.Store
	cluster string
	version int
}

func (w *mapWriter) next() mapstore.Change {
	hosts := []shards.Host{{Name: "pg-a", DSN: "postgres://10.0.0.1/app", Weight: w.version + 1}, {Name: "pg-b", DSN: "postgres://10.0.0.2/app"}}
	return mapstore.Change{By: "kiloshard bench", Why: fmt.Sprintf("change %d", w.version+1), Config: shards.Config{
		Cluster: w.cluster, Shards: 2048, Epoch: epoch, Layout: layout, Hosts: hosts, Placement: shards.Evenly(2048, hosts),
	}}
}

func (w *mapWriter) change(ctx context.Context) error {
	entry, err := w.store.Swap(ctx, w.version, w.next())
	if err == nil {
		w.version = entry.Map.Version()
	}
	return err
}

// changeAtLast retries a change until the store is reachable.
func (w *mapWriter) changeAtLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	wanted := w.version + 1
	for {
		err := w.change(ctx)
		var conflict *mapstore.ConflictError
		if errors.As(err, &conflict) && conflict.Found == wanted { // by an attempt whose answer was lost
			w.version, err = wanted, nil
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// checkHistory checks that the history has every version.
func (w *mapWriter) checkHistory(ctx context.Context, b *mapBench) error {
	version := w.version
	for entry, err := range w.store.History(ctx) {
		if err != nil {
			return err
		}
		if entry.Map.Version() != version {
			b.fail("version %d is in the history in the place of %d", entry.Map.Version(), version)
			return nil
		}
		version--
	}
	if version != 0 {
		b.fail("versions 1 to %d are not in the history", version)
	}
	return nil
}

// crowd is many watchers.
type crowd struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	version  []int      // that each watcher has
	arrived  []time.Time
	wrong    int           // versions received twice, or after a newer one
	lastErr  error         // of a watcher
	waiting  int           // the version that await waits for, 0 for none
	missing  int           // watchers without it
	complete chan struct{} // closed when missing is 0
}

func newCrowd(ctx context.Context, stores []mapstore.Store, watchers int) *crowd {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{cancel: cancel, version: make([]int, watchers), arrived: make([]time.Time, watchers)}
	for i := range watchers {
		c.done.Go(func() {
			for entry, err := range stores[i%len(stores)].Watch(ctx, 0) {
				c.tell(i, entry, err, time.Now())
			}
		})
	}
	return c
}

func (c *crowd) tell(watcher int, entry mapstore.Entry, err error, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.lastErr = err
		return
	}
	before, now := c.version[watcher], entry.Map.Version()
	if now <= before {
		c.wrong++
		return
	}
	c.version[watcher], c.arrived[watcher] = now, at
	if c.waiting > 0 && before < c.waiting && now >= c.waiting {
		c.missing--
		if c.missing == 0 {
			close(c.complete)
		}
	}
}

// await waits until all watchers have a version, and returns when each received it.
func (c *crowd) await(ctx context.Context, version int) ([]time.Time, error) {
	c.mu.Lock()
	c.waiting, c.missing, c.complete = version, 0, make(chan struct{})
	for _, v := range c.version {
		if v < version {
			c.missing++
		}
	}
	if c.missing == 0 {
		close(c.complete)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	select {
	case <-c.complete:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = 0
	if c.missing > 0 {
		return nil, fmt.Errorf("%d of %d watchers did not receive version %d: %w", c.missing, len(c.version), version, errors.Join(ctx.Err(), c.lastErr))
	}
	return append([]time.Time(nil), c.arrived...), nil
}

// at returns how many watchers have a version.
func (c *crowd) at(version int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, v := range c.version {
		if v == version {
			count++
		}
	}
	return count
}

// leave stops all watchers.
func (c *crowd) leave() {
	c.cancel()
	c.done.Wait()
}
