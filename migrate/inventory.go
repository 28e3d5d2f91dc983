package migrate

import (
	"context"
	"fmt"
	"sync"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// inventory is one host's answer about its shards.
type inventory struct {
	fanout.Work
	shardVersions map[shards.Number]shardVersion
	changed       []ChangedFile
	moving        shards.Set // being moved to another host
	err           error      // a [shards.HostError]; then shardVersions is empty
}

// look asks all hosts at once, by one message each, for the versions of their shards and for files that differ from the
// directory's.
//
// If settled is true for a shard of a host, look also flushes the host's commits to disk: the shard may be settled by a
// commit of another run, which does not wait for the disk. It does so in the same session, so that a crash in between is
// an error. A nil settled is false for all.
func look(ctx context.Context, sessions *session.Pool, m *shards.Map, d *files.Directory, plan []fanout.Work, settled func(shardVersion) bool) []inventory {
	inventories := make([]inventory, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			inventories[i] = inventory{Work: work}
			s, err := sessions.Take(ctx, work.Host)
			if err == nil {
				err = readInventory(ctx, s, m, d, &inventories[i])
				if err == nil && settled != nil && anyOf(inventories[i].shardVersions, settled) {
					if err = s.Flush(ctx); err != nil {
						err = fmt.Errorf("%w: %w", ErrNotFlushed, err)
					}
				}
				sessions.Give(s)
			}
			if err != nil {
				inventories[i].err = &shards.HostError{Host: work.Host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return inventories
}

func anyOf(shardVersions map[shards.Number]shardVersion, holds func(shardVersion) bool) bool {
	for _, at := range shardVersions {
		if holds(at) {
			return true
		}
	}
	return false
}

// readInventory reads a host's inventory by one message.
func readInventory(ctx context.Context, s *session.Session, m *shards.Map, d *files.Directory, inv *inventory) error {
	schemas := m.Schemas(inv.Shards)
	answers, err := s.Values(ctx, versions.Query(schemas)+";"+changedQuery(d)+";"+session.MovingQuery)
	if err != nil {
		return fmt.Errorf("versions of its shards and its ledger: %w", connect.NameHolders(ctx, s.Conn, err))
	}
	if inv.shardVersions, err = parseVersions(answers[0], schemas, inv.Shards); err != nil {
		return err
	}
	if inv.changed, err = parseChanged(d, answers[1], shards.SetOf(inv.Shards...)); err != nil {
		return err
	}
	if inv.moving, err = session.ParseMoving(answers[2]); err != nil {
		return err
	}
	for n, at := range inv.shardVersions {
		if at.err != nil && inv.moving.Has(n) { // the schema is a fence
			inv.shardVersions[n] = shardVersion{err: ErrMoving}
		}
	}
	return nil
}

// troubles returns the hosts that did not answer, and the shards that no run may touch: those that are not created, and
// those whose version is unreadable or above newest.
func troubles(m *shards.Map, inventories []inventory, newest int32) (hosts []error, failed []*shards.ShardError) {
	for _, host := range inventories {
		if host.err != nil {
			hosts = append(hosts, host.err)
			continue
		}
		for _, n := range host.Shards {
			if err := host.shardVersions[n].trouble(newest); err != nil {
				failed = append(failed, &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: host.Host.Name, Err: err})
			}
		}
	}
	return hosts, failed
}

// shardVersion is the version of a shard, or why it has none.
type shardVersion struct {
	version int32
	table   bool  // it has a version table; without one it is at version 0
	err     error // [ErrNotCreated], or that its version table is broken
}

// shardVersions reads the versions of shards on the session's host.
func shardVersions(ctx context.Context, s *session.Session, m *shards.Map, numbers []shards.Number) (map[shards.Number]shardVersion, error) {
	schemas := m.Schemas(numbers)
	answer, err := s.Value(ctx, versions.Query(schemas))
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", connect.NameHolders(ctx, s.Conn, err))
	}
	return parseVersions(answer, schemas, numbers)
}

// parseVersions reads the answer to [versions.Query].
func parseVersions(answer string, schemas []string, numbers []shards.Number) (map[shards.Number]shardVersion, error) {
	all, err := versions.Parse(answer, schemas)
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	found := make(map[shards.Number]shardVersion, len(numbers))
	for i, v := range all {
		at := shardVersion{version: v.Number, table: v.Table, err: v.Err}
		if !v.Schema {
			at.err = ErrNotCreated
		}
		found[numbers[i]] = at
	}
	return found, nil
}

// trouble returns why no run may touch a shard at this version, or nil.
func (s shardVersion) trouble(newest int32) error {
	if s.err == nil && s.version > newest {
		return fmt.Errorf("%w: it is at version %d, the newest file is %d", ErrAhead, s.version, newest)
	}
	return s.err
}

// fresh reports whether no file ever ran in a shard.
func (s shardVersion) fresh() bool { return s.version == 0 && !s.table && s.err == nil }
