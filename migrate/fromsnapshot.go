package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// firstShards is how many new shards run the files if no shard is at the target yet, so that the others can be copied from
// them. The difference between two shards shows where the structure holds a shard's number.
const firstShards = 2

// fresh reports whether no file ever ran in a shard.
func (s shardVersion) fresh() bool { return s.version == 0 && !s.table && s.err == nil }

// fromSnapshot returns the new shards to make from a snapshot, and false if all of them run the files.
func (r *run) fromSnapshot(work []fanout.Work) (shards.Set, bool) {
	if r.way != up || r.cfg.Replay || int(r.target) < r.cfg.SnapshotFrom {
		return shards.Set{}, false
	}
	var fresh []shards.Number
	for _, w := range work {
		for _, n := range w.Shards {
			if r.shardVersions[n].fresh() {
				fresh = append(fresh, n)
			}
		}
	}
	if len(fresh) <= firstShards {
		return shards.Set{}, false
	}
	files, err := r.directory.pending(fresh[0], 0, r.target, up)
	if err == nil {
		files = slices.DeleteFunc(files, func(f file) bool { return r.directory.once[f.number-1] }) // the hosts have run them
		err = onlyStructure(files)
	}
	if err != nil {
		r.cfg.Logger.Info("new shards run all files, since a snapshot would not hold what they do", slog.Any("because", err))
		return shards.Set{}, false
	}
	return shards.SetOf(fresh...), true
}

// donors returns the shards that are at the target and ran the directory's files unchanged.
func (r *run) donors() []shards.Number {
	var donors []shards.Number
	for n, at := range r.shardVersions {
		if at.err != nil || at.version != r.target {
			continue
		}
		changed := false
		for _, c := range r.changes {
			changed = changed || c.Shards.Has(n)
		}
		if !changed {
			donors = append(donors, n)
		}
	}
	return slices.Sorted(slices.Values(donors))
}

// takeSnapshot takes a snapshot of the structure that most shards at the target have. To check it, it makes one new shard
// from it, compares that with the donor, and rolls back. Without a snapshot, new shards run the files.
func (r *run) takeSnapshot(ctx context.Context, donors []shards.Number, fresh shards.Number) {
	s, err := snapshot.Take(ctx, r.cfg.Map, donors...)
	if err == nil {
		err = s.Check(ctx, fresh)
	}
	if err == nil && s.Version() != r.target {
		err = fmt.Errorf("shard %d is at version %d by now", s.Donor().Shard, s.Version())
	}
	if err != nil {
		r.cfg.Logger.Info("new shards run all files, since no snapshot could be made", slog.Any("because", err))
		r.noSnapshot = err
		return
	}
	r.snapshot = s
}

// makeFromSnapshot makes a new shard, in one round trip. The ledger gets one entry, for the newest file.
func (r *run) makeFromSnapshot(ctx context.Context, s *session, n shards.Number) (made bool) {
	e := entry{
		run: r.id, who: r.cfg.By, shard: n, version: r.target, direction: up,
		file: fmt.Sprintf("%s, as a snapshot of shard %d", r.directory.names[r.target-1], r.snapshot.Donor().Shard), checksum: r.directory.checksums[r.target-1],
	}
	_, err := s.conn.Exec(ctx, r.snapshot.Script(n, e.done())+neutral).ReadAll()
	if err == nil {
		return true
	}
	s.recover(ctx)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != sql.ShardMoved && pg.Code != sql.ShardBusy {
		r.cfg.Logger.Warn("a shard could not be made from the snapshot, so it runs all files", slog.Int("shard", int(n)), slog.Any("because", err))
	}
	return false
}
