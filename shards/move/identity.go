package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// identify gives tables without a key the whole row as their replica identity, for as long as they move. What they had is in
// the ledger before, in the same transaction.
func (j *job) identify(ctx context.Context) error {
	const query = `
		SELECT coalesce(string_agg(format('ALTER TABLE %I.%I REPLICA IDENTITY FULL', $1::text, c.relname), '; '), ''),
			coalesce(jsonb_object_agg(c.relname, c.relreplident), '{}')::text
		FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND ` + checks.IsKeyless
	var alter, were string
	if err := j.from.QueryRow(ctx, query, j.Schema).Scan(&alter, &were); err != nil || alter == "" {
		return err
	}
	note := fmt.Sprintf("UPDATE kiloshard.moves SET identities = coalesce(identities, '{}') || '%s' WHERE id = '%s'; ", session.Quoted(were), j.ID)
	if err := j.alter(ctx, note+alter); err != nil {
		return fmt.Errorf("replica identities on %s: %w", j.Source, err)
	}
	j.event("identified")
	return nil
}

// restoreIdentities gives tables back what [job.identify] took, wherever the shard's schema is by now.
func (j *job) restoreIdentities(ctx context.Context) error {
	identities, err := j.identities(ctx)
	if err != nil || len(identities) == 0 {
		return err
	}
	const query = `
		SELECT format('ALTER TABLE %s REPLICA IDENTITY %s', c.oid::regclass, CASE was WHEN 'd' THEN 'DEFAULT' ELSE 'NOTHING' END) -- an index that was dropped is none
		FROM jsonb_each_text($3) t (name, was) JOIN pg_class c ON c.relname = name AND c.relkind = 'r' AND c.relnamespace IN (to_regnamespace($1), to_regnamespace($2))`
	statements, err := session.Texts(ctx, j.from, query, j.Schema, j.moved(), identities)
	if err != nil {
		return err
	}
	statements = append(statements, fmt.Sprintf("UPDATE kiloshard.moves SET identities = NULL WHERE id = '%s'", j.ID))
	return j.alter(ctx, strings.Join(statements, "; "))
}

func (j *job) identities(ctx context.Context) (was map[string]string, err error) {
	err = j.from.QueryRow(ctx, `SELECT coalesce(identities, '{}') FROM kiloshard.moves WHERE id = $1`, j.ID).Scan(&was)
	return was, err
}

// withoutIdentities leaves out of the source's structure what [job.identify] changed.
func withoutIdentities(s drift.Structure, changed map[string]string) drift.Structure {
	var kept drift.Structure
	for _, l := range s {
		table, is := strings.CutPrefix(l.Key, "replica identity of {{.schema}}.")
		table = strings.ReplaceAll(strings.Trim(drift.Render(table, "", 0), `"`), `""`, `"`)
		if _, ours := changed[table]; !is || !ours {
			kept = append(kept, l)
		}
	}
	return kept
}

// alter changes tables on the source in one transaction, while nobody waits behind it for longer than the lock timeout.
func (j *job) alter(ctx context.Context, statements string) error {
	script := fmt.Sprintf("BEGIN; %s SET LOCAL lock_timeout = %d; %s; COMMIT", keepOutVacuum(j.Schema)+keepOutVacuum(j.moved()), j.cfg.LockTimeout.Milliseconds(), statements)
	began := time.Now()
	for {
		if err := j.untilQuiet(ctx, j.from, began, j.Schema); err != nil {
			return err
		}
		err := session.Run(ctx, j.from, script)
		if err == nil || !mayTryAgain(err) || ctx.Err() != nil {
			return err
		}
		if j.outOfPatience(began) {
			return fmt.Errorf("no lock within %s: %w", j.cfg.Patience, err)
		}
		if err := wait.Sleep(ctx, cutoverPause/10); err != nil {
			return err
		}
	}
}
