package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/sql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// Move is a row of the ledger on the host that a shard leaves.
//
// The ledger is on the hosts and not beside the map, because the transaction that fences the source also writes the step:
// so there is no moment in which a shard is fenced and the ledger does not know.
type Move struct {
	ID      string
	Shard   shards.Number
	Schema  string
	Source  string // names of hosts
	Target  string
	Step    Step
	Outcome Outcome
	Who     string
	Began   time.Time
	Stepped time.Time  // when the step was begun
	Fenced  *time.Time // since when the source refuses
	Error   string     // of the last attempt
	Offline bool       // it is copied while it is locked
	Back    *WayBack   // of a move that can be rolled back; nil for others
	Returns string     // the ID of the move that this one rolls back; empty for others
	Split   string     // the ID that the moves of one [Promote] share; empty for others
	Working bool       // a mover is at work on it, as Status found
}

// made is the name of the publication, the subscription and the slot.
func (m Move) made() string { return fmt.Sprintf("kiloshard_move_%05d_%s", m.Shard, m.ID) }

// moved is the name that the schema on the source has after the move.
func (m Move) moved() string { return m.Schema + "__moved_" + m.ID }

// fence is the name of the schema that takes the place of the moved one, before it does so.
func (m Move) fence() string { return m.Schema + "__fence_" + m.ID }

const moveColumns = `id, shard, schema, source, target, step, coalesce(outcome, ''), who, began, stepped, fenced, coalesce(error, ''), coalesce(offline, false),
	to_jsonb(m) -> 'back', coalesce(to_jsonb(m) ->> 'returns', ''), coalesce(to_jsonb(m) ->> 'split', '')` // the last three are unknown to a ledger of an older release

func (m *Move) fields() []any {
	return []any{&m.ID, &m.Shard, &m.Schema, &m.Source, &m.Target, &m.Step, &m.Outcome, &m.Who, &m.Began, &m.Stepped, &m.Fenced, &m.Error, &m.Offline, &m.Back, &m.Returns, &m.Split}
}

// The two sides of a move, as the ledger has them.
const (
	sourceSide = "source"
	targetSide = "target"
)

// install makes the ledger on a host if it is not there.
func install(ctx context.Context, conn *pgx.Conn) error {
	if err := session.Run(ctx, conn, sql.RefuseForeign(sql.Ours{})); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, sql.MovesAreThere()).Scan(&there); err != nil || there {
		return err
	}
	return session.Run(ctx, conn, "BEGIN;\n"+sql.Moves()+"COMMIT")
}

// enter adds a row to the ledger of a host, unless it is there.
func (m Move) enter(ctx context.Context, conn *pgx.Conn, side string) error {
	const query = `
		INSERT INTO kiloshard.moves (id, shard, schema, side, source, target, step, who, offline, back, returns, split, began, stepped, mover)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, nullif($11, ''), nullif($12, ''), clock_timestamp(), clock_timestamp(), pg_backend_pid()) ON CONFLICT (id) DO NOTHING`
	_, err := conn.Exec(ctx, query, m.ID, m.Shard, m.Schema, side, m.Source, m.Target, m.Step, m.Who, m.Offline, m.Back, m.Returns, m.Split)
	if session.Code(err) == "23505" { // of the index on the shard
		return fmt.Errorf("%w: the ledger of %s has a move of the shard under way; see kiloshard move status", ErrUnderWay, m.hostOf(side))
	}
	return err
}

// enterAlone adds the rows of moves to the source's ledger, in one transaction that has the shards' locks: no migration is at work
// then, and none begins later.
func enterAlone(ctx context.Context, from *pgx.Conn, moves ...Move) error {
	turn := moves[0].turn()
	err := wait.Until(ctx, lockWait, wait.Slowly, ErrBusy, func() (bool, error) {
		got, err := "true", session.Run(ctx, from, "BEGIN")
		for _, m := range moves {
			if err != nil || got != "true" {
				break
			}
			turn = m.turn()
			if got, err = session.Last(ctx, from, turn.Try()); err == nil && got == "true" {
				err = m.enter(ctx, from, sourceSide)
			}
		}
		end := "COMMIT"
		if err != nil || got != "true" {
			end = "ROLLBACK"
		}
		if ended := session.Run(ctx, from, end); err == nil {
			err = ended
		}
		return got == "true", err
	})
	return named(ctx, from, turn, err)
}

// claim makes the session the one that works on moves that are in the ledger of the source. Another mover keeps them as long as
// its session lives.
func claim(ctx context.Context, conn *pgx.Conn, ids ...string) error {
	return wait.Until(ctx, lockWait, wait.Slowly, errMoverAtWork, func() (bool, error) {
		const query = `
			UPDATE kiloshard.moves m SET mover = pg_backend_pid() WHERE id = ANY ($1) AND side = 'source' AND NOT EXISTS (
				SELECT FROM pg_stat_activity a WHERE a.pid = m.mover AND a.pid <> pg_backend_pid() AND a.datname = current_database()
					AND a.application_name = 'kiloshard move' AND has_schema_privilege(a.usesysid, 'kiloshard', 'create'))`
		tag, err := conn.Exec(ctx, query, ids)
		return tag.RowsAffected() == int64(len(ids)), err
	})
}

// turn is a mover's in the shard.
func (m Move) turn() sql.ShardTurn { return sql.ShardTurn{Shard: int(m.Shard), Schema: m.Schema} }

func (m Move) hostOf(side string) string {
	if side == sourceSide {
		return m.Source
	}
	return m.Target
}

// setStep writes the step that is about to begin, if the ledger has the step before and this mover.
func (j *job) setStep(ctx context.Context, step Step) error {
	const query = `
		UPDATE kiloshard.moves SET step = $2, stepped = clock_timestamp(), error = NULL
		WHERE id = $1 AND outcome IS NULL AND step = $3 AND mover = pg_backend_pid()`
	tag, err := j.from.Exec(ctx, query, j.ID, step, j.Step)
	if err == nil && tag.RowsAffected() != 1 {
		err = j.lostClaim()
	}
	if err != nil {
		return err
	}
	j.Step = step
	j.event("begun")
	return nil
}

// lostClaim says that another mover has changed the ledger.
func (j *job) lostClaim() error {
	return fmt.Errorf("the ledger of %s no longer has %s at step %s with this mover: another one has resumed it or taken it back; see kiloshard move status", j.Source, j.moving(), j.Step)
}

// confirm returns nil if the ledger of the source has the move at its step, with this mover: nobody takes it back, or resumes it, before
// this mover's session has ended. It opens another session if that was lost.
func (j *job) confirm(ctx context.Context) error {
	if j.from.IsClosed() {
		if err := j.reconnect(ctx); err != nil {
			return fmt.Errorf("the ledger of %s: %w", j.Source, err)
		}
	}
	var count int
	const query = `
		SELECT count(*) FROM kiloshard.moves
		WHERE (id = $1 OR split = $2) AND side = 'source' AND outcome IS NULL AND step = $3 AND mover = pg_backend_pid()`
	if err := j.from.QueryRow(ctx, query, j.ID, j.Split, j.Step).Scan(&count); err != nil {
		return fmt.Errorf("the ledger of %s: %w", j.Source, err)
	}
	if count != j.numbers().Len() {
		return &finalError{j.lostClaim()}
	}
	return nil
}

// reconnect opens a session to the source in place of one that was lost, and claims the move.
func (j *job) reconnect(ctx context.Context) error {
	from, err := session.Open(ctx, j.src)
	if err != nil {
		return err
	}
	if j.Split == "" {
		err = lockShard(ctx, from, j.turn())
	}
	var ids []string
	if err == nil {
		ids, err = session.Texts(ctx, from, `SELECT id FROM kiloshard.moves WHERE (id = $1 OR split = $2) AND side = 'source'`, j.ID, j.Split)
	}
	if err == nil {
		err = claim(ctx, from, ids...)
	}
	if err != nil {
		session.Close(ctx, from)
		return err
	}
	j.from = from
	return nil
}

// setOutcome ends a move in the ledger of a host.
func (m Move) setOutcome(ctx context.Context, conn *pgx.Conn, outcome Outcome) error {
	_, err := conn.Exec(ctx, `UPDATE kiloshard.moves SET outcome = $2, stepped = clock_timestamp() WHERE id = $1 AND outcome IS NULL`, m.ID, outcome)
	return err
}

// noted keeps an error for move status, and returns it.
func (j *job) noted(ctx context.Context, err error) error {
	if err == nil || j.from.IsClosed() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CancelLimit)
	defer cancel()
	_, _ = j.from.Exec(ctx, `UPDATE kiloshard.moves SET error = $2 WHERE id = $1 AND outcome IS NULL`, j.ID, err.Error()) // there is an error already
	return err
}

// moves returns the rows of one side on a host, the newest last. Without a ledger there are none.
func moves(ctx context.Context, conn *pgx.Conn, of *shards.Map, side string) ([]Move, error) {
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.moves') IS NOT NULL`).Scan(&there); err != nil || !there {
		return nil, err
	}
	var batch pgx.Batch // one transaction
	batch.Queue(special.Refuse("kiloshard.moves"))
	var found []Move
	batch.Queue(`SELECT `+moveColumns+`, outcome IS NULL AND `+sql.MoverAtWork+` FROM kiloshard.moves m WHERE side = $1 ORDER BY began, id`, side).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Move, error) {
			var m Move
			if err := row.Scan(append(m.fields(), &m.Working)...); err != nil {
				return m, err
			}
			return m, m.wellFormed(of)
		})
		return err
	})
	err := conn.SendBatch(ctx, &batch).Close()
	return found, connect.NameHolders(ctx, conn.PgConn(), err)
}
