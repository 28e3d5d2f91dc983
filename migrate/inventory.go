package migrate

import (
	"context"
	"fmt"
	"slices"
	"sync"

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
func look(ctx context.Context, sessions *sessions, m *shards.Map, d *directory, plan []fanout.Work, settled func(shardVersion) bool) []inventory {
	inventories := make([]inventory, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			inventories[i] = inventory{Work: work}
			s, err := sessions.take(ctx, work.Host)
			if err == nil {
				err = s.inventory(ctx, m, d, &inventories[i])
				if err == nil && settled != nil && anyOf(inventories[i].shardVersions, settled) {
					if err = s.flush(ctx); err != nil {
						err = fmt.Errorf("%w: %w", ErrNotFlushed, err)
					}
				}
				sessions.give(s)
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

// inventory reads a host's inventory by one message.
func (s *session) inventory(ctx context.Context, m *shards.Map, d *directory, inv *inventory) error {
	schemas := m.Schemas(inv.Shards)
	answers, err := s.values(ctx, versions.Query(schemas)+";"+d.changedQuery()+";"+movingQuery)
	if err != nil {
		return fmt.Errorf("versions of its shards and its ledger: %w", connect.NameHolders(ctx, s.conn, err))
	}
	if inv.shardVersions, err = parseVersions(answers[0], schemas, inv.Shards); err != nil {
		return err
	}
	if inv.changed, err = d.parseChanged(answers[1], shards.SetOf(inv.Shards...)); err != nil {
		return err
	}
	if inv.moving, err = parseMoving(answers[2]); err != nil {
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

// trouble returns why no run may touch a shard at this version, or nil.
func (s shardVersion) trouble(newest int32) error {
	if s.err == nil && s.version > newest {
		return fmt.Errorf("%w: it is at version %d, the newest file is %d", ErrAhead, s.version, newest)
	}
	return s.err
}

// mergeChanges merges the changed files of two hosts.
func mergeChanges(all, more []ChangedFile) []ChangedFile {
	for _, c := range more {
		i := slices.IndexFunc(all, func(a ChangedFile) bool { return a.Version == c.Version && a.File == c.File })
		if i < 0 {
			all = append(all, c)
			continue
		}
		all[i].Shards = all[i].Shards.Union(c.Shards)
	}
	slices.SortFunc(all, func(a, b ChangedFile) int { return int(a.Version - b.Version) })
	return all
}
