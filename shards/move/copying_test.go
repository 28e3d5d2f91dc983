package move_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// stream is a source of rows for COPY that cannot be read twice. It stops in the middle until it is told to go on.
type stream struct {
	rows   int
	first  int64
	begun  chan struct{} // closed when a row is wanted
	goOn   chan struct{} // closed by the test
	copied chan error

	read int
}

func newStream(first int64) *stream {
	return &stream{rows: 2000, first: first, begun: make(chan struct{}), goOn: make(chan struct{}), copied: make(chan error, 1)}
}

// flowing is a stream that does not stop.
func flowing(first int64) *stream {
	s := newStream(first)
	close(s.goOn)
	return s
}

func (s *stream) Next() bool {
	switch s.read {
	case 0:
		close(s.begun)
	case s.rows / 2:
		<-s.goOn
	}
	s.read++
	return s.read <= s.rows
}

func (s *stream) Values() ([]any, error) { return []any{s.first + int64(s.read), "streamed"}, nil }
func (s *stream) Err() error             { return nil }

// copier is a shard or a transaction in one.
type copier interface {
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error)
}

// into copies the stream into photos.
func (s *stream) into(ctx context.Context, to copier) error {
	copied, err := to.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "title"}, s)
	if err == nil && copied != int64(s.rows) {
		err = fmt.Errorf("copied %d rows of %d", copied, s.rows)
	}
	return err
}

// begin begins to copy, and returns once rows are wanted, unless the copy has failed.
func (s *stream) begin(t *testing.T, copying func() error) {
	t.Helper()
	go func() { s.copied <- copying() }()
	select {
	case <-s.begun:
	case err := <-s.copied:
		t.Errorf("the copy ended before it began: %v", err)
		s.copied <- err
	case <-time.After(time.Minute):
		t.Error("the copy does not begin")
	}
}

func (b *bundle) streamed(host int, streams int) {
	b.t.Helper()
	b.equal("streamed rows", b.text(host, `select count(*) || ' ' || count(distinct id) from shard_00001.photos where title = 'streamed'`), fmt.Sprintf("%[1]d %[1]d", 2000*streams))
}

// A COPY that has begun before the cutover ends where it began, however long its source takes: the cutover waits for it, other calls do
// not, and its rows come along.
func TestCopyAcrossCutover(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begins string // when the copy does
		old    bool   // it is older than the lock timeout when the cutover begins
		copies func(ctx context.Context, s router.Shard, source *stream) error
	}{
		"a while before": {"copy: copied", true, func(ctx context.Context, s router.Shard, source *stream) error { return source.into(ctx, s) }},
		"just before":    {"cutover: begun", false, func(ctx context.Context, s router.Shard, source *stream) error { return source.into(ctx, s) }},
		"in a transaction": {"cutover: begun", false, func(ctx context.Context, s router.Shard, source *stream) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `update likes set who = 9 where who = 1`); err != nil {
					return err
				}
				return source.into(ctx, tx)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill)
			c := b.crowd(t, returning, inTx, reading(`select count(*) from events`))
			source, s := newStream(1), b.routed(t)
			if !test.old {
				b.cfg.LockTimeout = time.Minute // a transaction that is older is waited for without locks
			}
			tell, waited := b.cfg.Events, false
			b.cfg.Events = func(e progress.Event) {
				tell(e)
				switch p := point(e); {
				case p == test.begins:
					source.begin(t, func() error { return test.copies(t.Context(), s, source) })
					if test.old {
						b.text(0, `select pg_sleep(0.5)`) // longer than the lock timeout
					}
				case !waited && (!test.old && p == "cutover: tries again" || p == "cutover: waits"):
					waited = true
					c.some("calls while rows are copied")
					close(source.goOn)
				}
			}
			if _, err := move.Run(t.Context(), b.cfg); err != nil {
				t.Fatal(err)
			}
			if !waited {
				t.Error("the shard moved although rows were copied into it")
			}
			if err := <-source.copied; err != nil {
				t.Errorf("the copy: %v", err)
			}
			c.some("calls after the move")
			c.end(b, 1)
			b.streamed(1, 1)
			b.clean()
		})
	}
}

// A COPY that begins while the cutover has the locks, or at the fence, finds the shard's new place before it reads a row.
func TestCopyInCutover(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	var streams []*stream
	begin := func(copying func(*stream) error) {
		source := flowing(int64(len(streams)) << 20)
		streams = append(streams, source)
		go func() { source.copied <- copying(source) }()
	}
	tell, locked := b.cfg.Events, false
	b.cfg.MaxPause = time.Minute // the calls below are waited for under locks
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		switch p := point(e); {
		case p == "cutover: marked" && !locked:
			locked = true
			waits := `select count(*) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`
			for range 3 {
				s := b.routed(t)
				begin(func(source *stream) error { return source.into(t.Context(), s) })
				eventually(t, "copies that wait", func() bool { return b.text(0, waits) == fmt.Sprint(len(streams)) })
			}
		case p == "cutover: released" || p == "fenced: begun" || p == "fenced: switched":
			s := b.routed(t) // with a map that has the shard at its old place, mostly
			begin(func(source *stream) error { return source.into(t.Context(), s) })
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("copies", fmt.Sprint(len(streams)), "6")
	for i, source := range streams {
		if err := <-source.copied; err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
	}
	b.streamed(1, len(streams))
	b.clean()
}

// A transaction that holds nothing of a shard when it moves, although something has run in it, is told so before COPY reads a row: it
// can be run again with the same source.
func TestCopyAfterMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	s := b.routed(t)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `set local work_mem = '8MB'`); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	source := flowing(1)
	if err := source.into(t.Context(), tx); !errors.Is(err, router.ErrMoved) || !router.SafeToRetry(err) {
		t.Errorf("got %v, expected ErrMoved", err)
	}
	_ = tx.Rollback(t.Context())
	b.equal("rows that were read", fmt.Sprint(source.read), "0")
	if err := source.into(t.Context(), s); err != nil {
		t.Error(err)
	}
	b.streamed(1, 1)
}

// Statements that were prepared before a move, and IDs that were taken before it, are good after it.
func TestPreparedBeforeMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	s := b.routed(t)
	ctx := t.Context()
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Prepare(ctx, "mine", `select next_id()`); err != nil { // it holds no lock of a table
		t.Fatal(err)
	}
	ids, err := s.NextIDs(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	const write = `insert into photos (id, title) values ($1, 'before') returning id`
	var id int64
	if err := s.QueryRow(ctx, write, ids[0]).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Run(ctx, b.cfg); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a router that has the new map", func() bool { return s.Host().Name == "pg-b" })
	if err := s.QueryRow(ctx, write, ids[1]).Scan(&id); err != nil {
		t.Error(err)
	}
	if err := tx.QueryRow(ctx, "mine").Scan(&id); err != nil || id <= int64(ids[2]) {
		t.Errorf("ID %d after %d, %v", id, ids[2], err)
	}
	if _, err := tx.Exec(ctx, `insert into photos (id, title) values ($1, 'before')`, ids[2]); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	b.equal("rows", b.text(1, `select count(*) from shard_00001.photos where title = 'before'`), "3")
}
