package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// firstShards is how many new shards run the files, so that the others can be copied from them: only what files have just made shows
// whether they leave rows. The difference between two shards shows where the structure holds a shard's number.
const firstShards = 2

// fromSnapshot returns the new shards of the work, of which all but the first ones are to be made from a snapshot; none if all run the
// files.
func (r *run) fromSnapshot(work []fanout.Work) shards.Set {
	if r.way != files.Up || r.cfg.Replay || int(r.target) < r.cfg.SnapshotFrom {
		return shards.Set{}
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
		return shards.Set{}
	}
	return shards.SetOf(fresh...)
}

// errNoDonor says that there is no shard to take a snapshot of.
var errNoDonor = errors.New("none of the first ones is done")

// takeSnapshot takes a snapshot of the structure that most new shards have that are done. To check it, it makes one more
// from it, compares that with the donor, and rolls back: a donor with rows, or with rights of its own, differs. Without a
// snapshot, new shards run the files. It cannot see that files write rows only in some other shards, by their names or numbers.
func (r *run) takeSnapshot(ctx context.Context, fresh, done shards.Set) {
	rest := without(fresh, done)
	donors := slices.Collect(without(fresh, rest).All())
	if rest.Len() == 0 {
		return
	}
	if len(donors) == 0 {
		r.noSnapshot = errNoDonor
		return
	}
	s, err := snapshot.Take(ctx, r.cfg.Map, donors...)
	if err == nil {
		err = s.Check(ctx, first(rest))
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
func (r *run) makeFromSnapshot(ctx context.Context, s *session.Session, n shards.Number) (made bool) {
	e := ledger.Entry{
		Run: r.id, Who: r.cfg.By, Shard: n, Version: r.target, Direction: files.Up,
		File: fmt.Sprintf("%s, as a snapshot of shard %d", r.directory.Names[r.target-1], r.snapshot.Donor().Shard), Checksum: r.directory.Checksums[r.target-1],
	}
	_, err := s.Conn.Exec(ctx, r.snapshot.Script(n, e.Done())+session.Neutral).ReadAll()
	if err == nil {
		return true
	}
	s.Recover(ctx)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != sql.ShardMoved && pg.Code != sql.ShardBusy {
		r.cfg.Logger.Warn("a shard could not be made from the snapshot, so it runs all files", slog.Int("shard", int(n)), slog.Any("because", err))
	}
	return false
}
