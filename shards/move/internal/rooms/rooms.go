// Package rooms makes the moves of one command wait while their hosts have no replication slot, WAL sender or worker left for them. Otherwise they would fail
// half-way.
package rooms

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Rooms are the moves that one command has under way. They are safe for concurrent use.
type Rooms struct {
	mu       sync.Mutex // guards admitted; held while hosts are asked, so that no two moves take the last slot
	admitted []ledger.Move
}

// The most that one move needs at a time: a check logs in beside a copy, and each check expects one more of all to be free.
const (
	sendersOfMove = 2
	spare         = 1
)

// Admit waits until there is room for a move between two hosts, and reports what it waits for. It does not wait for other programs: with no move of
// this command under way on these hosts, the checks report what is missing. The returned function ends the move's use of the room.
func (r *Rooms) Admit(ctx context.Context, source, target *pgx.Conn, m ledger.Move, report func(format string, args ...any)) (leave func(), err error) {
	reported := time.Now()
	err = wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		missing, err := r.missing(ctx, source, target, m)
		if err == nil && missing == "" {
			r.admitted = append(r.admitted, m)
			return true, nil
		}
		if err == nil && time.Since(reported) > wait.Interval {
			reported = time.Now()
			report("waits for %s", missing)
		}
		return false, err
	})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.admitted = slices.DeleteFunc(r.admitted, func(other ledger.Move) bool { return other.ID == m.ID })
	}, err
}

// missing names what a move would wait for; empty if there is room, or no move to wait for.
func (r *Rooms) missing(ctx context.Context, source, target *pgx.Conn, m ledger.Move) (string, error) {
	if m.Offline || m.Returns != "" {
		return "", nil
	}
	leaving, arriving := r.with(m.Source, ""), r.with("", m.Target)
	if len(leaving)+len(arriving) == 0 {
		return "", nil
	}
	const onSource = `
		SELECT current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots WHERE slot_name <> ALL ($1)),
			current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication WHERE NOT coalesce(application_name = ANY ($1) OR application_name = 'kiloshard move', false))`
	const onTarget = `
		SELECT current_setting('max_logical_replication_workers')::int - (SELECT count(pid) FROM pg_stat_subscription WHERE subname <> ALL ($1)),
			current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots WHERE slot_name <> ALL ($1))`
	var slots, senders, workers, slotsBack int
	if err := source.QueryRow(ctx, onSource, made(leaving)).Scan(&slots, &senders); err != nil {
		return "", err
	}
	if err := target.QueryRow(ctx, onTarget, made(arriving)).Scan(&workers, &slotsBack); err != nil {
		return "", err
	}
	// The slots of ways that moves to the source, and from the target, keep count as others'.
	var lacks []string
	lack := func(free, of int, what, host string) {
		if free < of {
			lacks = append(lacks, what+" on "+host)
		}
	}
	lack(slots, len(leaving)+1+spare, "a replication slot", m.Source)
	lack(senders, sendersOfMove*(len(leaving)+1), "a WAL sender", m.Source)
	lack(workers, len(arriving)+1+spare, "a logical replication worker", m.Target)
	if m.Back != nil {
		lack(slotsBack, len(arriving)+1, "a replication slot", m.Target)
	}
	return strings.Join(lacks, ", "), nil
}

// with returns the moves that leave a host, or arrive at one.
func (r *Rooms) with(source, target string) (found []ledger.Move) {
	for _, m := range r.admitted {
		if m.Source == source || m.Target == target {
			found = append(found, m)
		}
	}
	return found
}

// made names what moves make: slots, subscriptions, and the slots of ways back.
func made(moves []ledger.Move) []string {
	names := []string{}
	for _, m := range moves {
		names = append(names, m.Slot(), m.BackSlot())
	}
	return names
}
