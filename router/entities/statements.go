package entities

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
)

// statements builds the statements that write entities. Their first arguments are the ID, the definitions, and the body.
//
// Those of a store with indexes run while their transaction holds the lock of the entity, and begin after it has the lock. So
// versions rise in the order of the commits, also if the entity is deleted in between, and the statements see all rows of
// entity_work that were written with a lower version. A transaction that sees only its beginning would not: so they refuse
// to run in one. They return no row if the definitions differ.
func (s *Store) statements() {
	const (
		known = `(` + isKnown + ` and current_setting('transaction_isolation') = 'read committed')`
		// A write ends the claims of all other writers of the entity.
		drop = `update entity_work set state = 'dropped' where entity_id = $1 and state = 'claims'`
		set  = ` on conflict (id) do update set version = excluded.version, body = excluded.body, updated = clock_timestamp()`
	)
	s.plainPut = `insert into entities (id, body) select $1::uuid, $3::jsonb where ` + known + set + ` returning true`
	s.plainGone = `with gone as (delete from entities where id = $1 and ` + known + ` returning 1) select exists (select from gone) where ` + known
	unique := project(s.d.paths(func(i IndexDefinition) bool { return i.Unique }), "body")
	// $4 says whether the document has rows in unique indexes. If they differ from those of the present document, the statement
	// writes only the work: the rows come first.
	s.put = fmt.Sprintf(`with old as materialized (
			select %[1]s as has, %[2]s as claimed from entities where id = $1
		), fresh as materialized (
			select %[1]s as has, %[2]s as claimed from (select $3::jsonb as body) b
		), plan as materialized (
			select next_id() as version, (select has from old) as before, fresh.has as after,
				$4::boolean and (select claimed from old) is distinct from fresh.claimed as claims,
				exists (select from entity_work where entity_id = $1) as pending
			from fresh where %[3]s
		), put as (
			insert into entities (id, version, body) select $1::uuid, version, $3::jsonb from plan where not claims %[4]s
		), dropped as (
			%[5]s and exists (select from plan where not claims)
		), work as (
			insert into entity_work (version, entity_id, state, before, after)
			select version, $1::uuid, case when claims then 'claims' else 'written' end, before, after from plan
			where claims or pending or before is distinct from after
			returning 1
		)
		select version, claims, pending, exists (select from work), before::text, after::text from plan`,
		s.project("body"), unique, known, set, drop)
	// $4 is the version of the work.
	s.commit = fmt.Sprintf(`with mine as materialized (
			update entity_work set state = 'written' where version = $4 and entity_id = $1 and state = 'claims' and %s returning 1
		), put as (
			insert into entities (id, version, body) select $1::uuid, $4::bigint, $3::jsonb from mine %s
		), dropped as (
			%s and version <> $4 and exists (select from mine)
		)
		select exists (select from mine), exists (select from entity_work where entity_id = $1 and version <> $4) where %[1]s`,
		known, set, drop)
	s.gone = fmt.Sprintf(`with gone as (
			delete from entities where id = $1 and %s returning %s as before
		), plan as materialized (
			select next_id() as version, before from gone
		), dropped as (
			%s and exists (select from gone)
		), work as (
			insert into entity_work (version, entity_id, state, before) select version, $1::uuid, 'written', before from plan
		)
		select exists (select from gone), coalesce((select version from plan), 0), (select before::text from plan) where %[1]s`,
		known, s.project("body"), drop)
}

// lock adds a statement to a batch that takes the lock of an entity until the end of the transaction.
func lock(b *pgx.Batch, id ID) {
	const class = 0x656e7469 // apart from other locks
	sum := fnv.New32a()
	_, _ = sum.Write(id[:]) // returns no error
	key := int32(sum.Sum32())
	b.Queue(`select pg_advisory_xact_lock($1::int, $2::int)`, class, key)
}

// send sends a batch whose last query returns a row, and scans that. The first query may wait while the shard moves, and a later
// one is refused then: nothing of the batch has taken effect, and the next attempt goes to the new host.
func send(ctx context.Context, shard router.Shard, b *pgx.Batch, into ...any) error {
	err := sendOnce(ctx, shard, b, into...)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && moved.MatchString(refused.Code) {
		return sendOnce(ctx, shard, b, into...)
	}
	return err
}

// moved matches the codes of errors that statements get in the schema of a shard that has moved: no such table, a view in its
// place, or the error that names the new host.
var moved = regexp.MustCompile(`^(42|0A|3F|55000|KSM01)`)

func sendOnce(ctx context.Context, shard router.Shard, b *pgx.Batch, into ...any) error {
	results := shard.SendBatch(ctx, b)
	var err error
	for range b.Len() - 1 {
		if err == nil {
			_, err = results.Exec()
		}
	}
	if err == nil {
		err = results.QueryRow().Scan(into...)
	}
	if closed := results.Close(); err == nil || errors.Is(err, pgx.ErrNoRows) && closed != nil {
		err = closed
	}
	return err
}

// locked runs a statement in a transaction that holds the lock of an entity, and scans its row. If there is none, it returns a
// [DefinitionError].
func (s *Store) locked(ctx context.Context, shard router.Shard, id ID, query string, args []any, into ...any) error {
	return s.known(ctx, shard, func() error {
		var b pgx.Batch
		lock(&b, id)
		b.Queue(query, append([]any{id, s.definitions}, args...)...)
		return send(ctx, shard, &b, into...)
	})
}

// known sends a statement that returns no row if the definitions differ, and then returns a [DefinitionError].
func (s *Store) known(ctx context.Context, shard router.Shard, send func() error) error {
	for {
		err := send()
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err := s.mismatch(ctx, shard); err != nil {
			return err
		}
	}
}

// pause waits for a short random time, longer after each attempt, so that one of several writers of an entity comes through.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(time.Millisecond << min(attempt, 7))):
		return nil
	}
}
