package move_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// asReplica lets a test write to the copy on the target, as the move does.
const asReplica = `set session_replication_role = replica; `

// refusedWrites are ways to write to a table of the shard on its new host.
var refusedWrites = []string{
	`insert into shard_00001.photos (title) values ('stray')`,
	`insert into shard_00001.photos (title) values ('stray') on conflict do nothing returning id`,
	`update shard_00001.photos set title = 'stray'`,
	`delete from shard_00001.likes`,
	`truncate shard_00001.events`,
	`copy shard_00001.events (what) from stdin`,
}

// TestTargetTakesNoWrites writes to the copy on the target at each step of a move, as the tables' owner: nobody but the move may. After
// the switch everybody may.
func TestTargetTakesNoWrites(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		at := []string{"schema: made", "copy: caught up", "cutover: carried"}
		if offline {
			at = []string{"schema: made", "cutover: carried"}
		}
		for _, step := range at {
			t.Run(map[bool]string{false: "online ", true: "offline "}[offline]+step, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.exec(0, fill+`create sequence falling increment -1; select nextval('falling')`)
				b.cfg.Offline = offline
				b.interrupted(step)
				b.refuses()
				b.isNotThere()
				if step != "cutover: carried" {
					b.atTheirEnds()
				}
				if step == "cutover: carried" && !offline {
					b.analyzed()
				}
				if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
					t.Fatal(err)
				}
				b.analyzed()
				b.equal("stray rows", b.text(1, `select count(*) from shard_00001.photos where title = 'stray'`), "0")
				b.equal("rows", b.text(1, `select count(*) from shard_00001.photos`), "1000")
				b.equal("triggers left", b.text(1, `select count(*) from pg_trigger where tgname like 'kiloshard%'`), "0")
				for _, query := range refusedWrites[:len(refusedWrites)-1] {
					b.exec(1, query)
				}
				b.clean()
			})
		}
	}
}

func (b *bundle) refuses() {
	b.t.Helper()
	conn := b.connect(1)
	defer conn.Close(b.t.Context())
	for _, query := range refusedWrites {
		var err error
		if strings.HasPrefix(query, "copy") {
			_, err = conn.PgConn().CopyFrom(b.t.Context(), strings.NewReader("stray\n"), query)
		} else {
			_, err = conn.Exec(b.t.Context(), query, pgx.QueryExecModeSimpleProtocol)
		}
		if err == nil || !strings.Contains(err.Error(), "shard 1 is moving here, and is still on pg-a") {
			b.t.Errorf("%s: got %v", query, err)
		}
	}
}

// atTheirEnds checks that the other sequences of the copy give no values, which the shard gives, too.
func (b *bundle) atTheirEnds() {
	b.t.Helper()
	for _, name := range []string{"events_n_seq", "falling"} {
		if err := b.try(1, `select nextval('shard_00001.`+name+`')`); err == nil || !strings.Contains(err.Error(), "reached m") {
			b.t.Errorf("sequence %s: got %v", name, err)
		}
	}
}

// isNotThere checks that the copy on the target gives no IDs, and that a router which believes that the shard is there reads nothing of it.
func (b *bundle) isNotThere() {
	b.t.Helper()
	for _, query := range []string{`select shard_00001.next_id()`, `select shard_00001.next_ids(2)`} {
		if err := b.try(1, query); err == nil {
			b.t.Errorf("%s: no error", query)
		}
	}
	c := b.m.Config()
	c.Placement = []shards.Placement{{Shards: shards.SetOf(0), Host: "pg-a"}, {Shards: shards.SetOf(1, 2, 3), Host: "pg-b"}}
	old, err := c.Map()
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := router.New(b.t.Context(), router.Config{Map: old})
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	s, err := r.ForShard(1)
	if err != nil {
		b.t.Fatal(err)
	}
	var rows int
	if err := s.QueryRow(b.t.Context(), `select count(*) from photos`).Scan(&rows); !errors.Is(err, router.ErrMoved) {
		b.t.Errorf("got %d rows, %v; expected ErrMoved", rows, err)
	}
}

// analyzed checks that the target knows how many rows there are.
func (b *bundle) analyzed() {
	b.t.Helper()
	b.equal("rows by the statistics", b.text(1, `select reltuples from pg_class where oid = 'shard_00001.photos'::regclass`), "1000")
	b.equal("columns without statistics", b.text(1, `select count(*) from pg_attribute a where attrelid = 'shard_00001.photos'::regclass and attname in ('id', 'title')
		and not exists (select from pg_statistic where starelid = attrelid and staattnum = attnum)`), "0")
}

// TestTargetIsRead holds a lock on the target, as pg_dump does on all sequences, while a shard arrives: nobody waits for it but the move.
func TestTargetIsRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.interrupted("copy: caught up")
	reader := b.connect(1)
	defer reader.Close(t.Context())
	if _, err := reader.Exec(t.Context(), `begin; select last_value from shard_00001.kiloshard_arriving_seq`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := move.Resume(t.Context(), b.cfg.Config)
		ended <- err
	}()
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
		b.exec(0, `set lock_timeout = '1s'; insert into shard_00001.photos (title) values ('written meanwhile')`)
	}
	select {
	case err := <-ended:
		t.Fatalf("the move ended: %v", err)
	default:
	}
	if _, err := reader.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	b.served("pg-b", "the end")
	b.clean()
}
