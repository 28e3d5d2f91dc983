package replicate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// Identify gives tables without a key the whole row as their replica identity, for as long as they move, and reports whether there are any. The ledger keeps
// what they had, from the same transaction on.
func (s Stream) Identify(ctx context.Context) (changed bool, err error) {
	const query = `
		SELECT coalesce(string_agg(format('ALTER TABLE %I.%I REPLICA IDENTITY FULL', $1::text, c.relname), '; '), ''),
			coalesce(jsonb_object_agg(c.relname, c.relreplident), '{}')::text
		FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND ` + checks.IsKeyless
	var alter, were string
	if err := s.From.QueryRow(ctx, query, s.Schema).Scan(&alter, &were); err != nil || alter == "" {
		return false, err
	}
	note := fmt.Sprintf("UPDATE kiloshard.moves SET identities = coalesce(identities, '{}') || '%s' WHERE id = '%s'; ", session.Quoted(were), s.ID)
	if err := s.alter(ctx, note+alter); err != nil {
		return false, fmt.Errorf("replica identities on %s: %w", s.Source, err)
	}
	return true, nil
}

// RestoreIdentities undoes [Stream.Identify], in the shard's schema or the old schema.
func (s Stream) RestoreIdentities(ctx context.Context) error {
	identities, err := s.Identities(ctx)
	if err != nil {
		return fmt.Errorf("replica identities on %s: %w", s.Source, err)
	}
	if len(identities) == 0 {
		return nil
	}
	const query = `
		SELECT format('ALTER TABLE %s REPLICA IDENTITY %s', c.oid::regclass, CASE was WHEN 'd' THEN 'DEFAULT' ELSE 'NOTHING' END) -- an index that was dropped is no identity
		FROM jsonb_each_text($3) t (name, was) JOIN pg_class c ON c.relname = name AND c.relkind = 'r' AND c.relnamespace IN (to_regnamespace($1), to_regnamespace($2))`
	statements, err := session.Texts(ctx, s.From, query, s.Schema, s.OldSchema(), identities)
	if err != nil {
		return fmt.Errorf("replica identities on %s: %w", s.Source, err)
	}
	statements = append(statements, fmt.Sprintf("UPDATE kiloshard.moves SET identities = NULL WHERE id = '%s'", s.ID))
	if err := s.alter(ctx, strings.Join(statements, "; ")); err != nil {
		return fmt.Errorf("replica identities on %s: %w", s.Source, err)
	}
	return nil
}

// Identities returns the replica identities that [Stream.Identify] has changed, as pg_class has them, by table.
func (s Stream) Identities(ctx context.Context) (was map[string]string, err error) {
	err = s.From.QueryRow(ctx, `SELECT coalesce(identities, '{}') FROM kiloshard.moves WHERE id = $1`, s.ID).Scan(&was)
	return was, err
}

// alterPause is the pause between two tries of [Stream.alter].
const alterPause = 200 * time.Millisecond

// alter changes tables on the source in one transaction. Nobody waits behind it for longer than the lock timeout.
func (s Stream) alter(ctx context.Context, statements string) error {
	script := fmt.Sprintf("BEGIN; %s SET LOCAL lock_timeout = %d; %s; COMMIT", locks.ExcludeVacuum(s.Schema)+locks.ExcludeVacuum(s.OldSchema()), s.Limits.Lock.Milliseconds(), statements)
	began := time.Now()
	for {
		if err := locks.WaitForOlder(ctx, s.From, s.Limits, began, s.Schema); err != nil {
			return err
		}
		err := session.Run(ctx, s.From, script)
		if err == nil || !session.IsTransient(err) || ctx.Err() != nil {
			return err
		}
		if s.Limits.Exceeded(began) {
			return fmt.Errorf("no lock within %s: %w", s.Limits.Retry, err)
		}
		if err := wait.Sleep(ctx, alterPause); err != nil {
			return err
		}
	}
}
