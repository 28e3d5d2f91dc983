package replica

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// silentAfter is the time limit for one measurement. A replica that takes longer is not used, and reads that wait for
	// it go to another server.
	silentAfter = 400 * time.Millisecond
	// freshFor is how long a measurement is valid, unless a reader allows less lag than that.
	freshFor = 750 * time.Millisecond
	// waitingPause is the pause between two measurements while reads wait for one.
	waitingPause = time.Millisecond
	// connectLimit is the time limit for making a connection for measurements.
	connectLimit = 3 * time.Second
	// closeLimit is the time limit for closing it.
	closeLimit = time.Second
	// failedPause is the pause after a failed measurement, even while reads wait: polling must not slow down a server that
	// starts. The next measurement uses a new connection. rolePause is the pause if the server has the wrong role: it is
	// likely to keep that role.
	failedPause = 100 * time.Millisecond
	rolePause   = time.Second
)

// ErrSilent means that a replica is not used because it does not answer.
var ErrSilent = errors.New("the replica does not answer")

var (
	errOther      = errors.New("the replica belongs to another cluster than the primary")
	errTimeline   = errors.New("the replica is not known to follow the primary since the promotion")
	errNoLog      = errors.New("the primary is a standby, or was not measured yet")
	errNotPrimary = errors.New("the primary is a standby")
)

// rest waits until the next measurement is due, or ctx ends. A replica, which has a woken channel, is measured more often
// while reads wait for it. How many reads wait makes no difference.
func (s *Set) rest(ctx context.Context, woken <-chan struct{}) {
	long := time.Duration(s.pause.Load())
	if woken != nil && s.waiting.Load() > 0 {
		long, woken = waitingPause, nil
	}
	sleep(ctx, long, woken)
}

func sleep(ctx context.Context, long time.Duration, woken <-chan struct{}) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-woken:
	case <-ctx.Done():
	}
}

func pauseAfter(err error) time.Duration {
	if errors.Is(err, errNoStandby) || errors.Is(err, errNotPrimary) {
		return rolePause
	}
	return failedPause
}

// measurePrimary records the primary's WAL positions until ctx ends, or there was no read for a while.
func (s *Set) measurePrimary(ctx context.Context) {
	p := probe{server: s.primary}
	defer p.close()
	for !s.idle() && ctx.Err() == nil {
		if err := s.measureLog(ctx, &p); err != nil {
			p.close()
			s.mu.Lock()
			s.trouble = err
			s.mu.Unlock()
			sleep(ctx, pauseAfter(err), nil)
			continue
		}
		s.rest(ctx, nil)
	}
}

func (s *Set) measureLog(ctx context.Context, p *probe) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	const query = `select (select system_identifier from pg_control_system()), not pg_is_in_recovery(),
	coalesce(substr(pg_walfile_name(place), 1, 8), ''), coalesce((place - '0/0')::int8, 0),
	coalesce((flushed - '0/0')::int8, 0), current_setting('wal_block_size')::int8,
	(extract(epoch from current_setting('wal_writer_delay')::interval) * 1000000)::int8
	from (select case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() end as place,
		case when not pg_is_in_recovery() then pg_current_wal_flush_lsn() end as flushed) as log`
	var primary bool
	var timeline string
	var system, lsn, flushed, block, delay int64
	m := mark{at: time.Now()}
	err := p.conn.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&system, &primary, &timeline, &lsn, &flushed, &block, &delay)
	if err != nil {
		return err
	}
	if !primary {
		return errNotPrimary
	}
	m.inserted, m.flushed = recordEnd(lsn, block), uint64(flushed)
	m.slack = 3 * time.Duration(delay) * time.Microsecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.system != system {
		s.log = nil
	}
	s.log.add(m)
	s.system, s.timeline, s.trouble = system, timelineOf(timeline), nil
	for _, r := range s.all {
		if known := r.now.Load(); known != nil {
			r.judge(*known)
		}
	}
	s.notify()
	return nil
}

// measureAll measures a replica until ctx ends.
func (r *replica) measureAll(ctx context.Context) {
	p := probe{server: r.Server}
	defer p.close()
	for ctx.Err() == nil {
		if err := r.measure(ctx, &p); err != nil && ctx.Err() == nil {
			p.close()
			r.set.mu.Lock()
			before := r.now.Swap(&state{why: err})
			r.set.mu.Unlock()
			switch {
			case errors.Is(err, ErrSilent):
				r.begin() // reads that wait for it go to another server
			case errors.Is(err, errNoStandby) && before != nil && !errors.Is(before.why, errNoStandby):
				r.set.promoted()
			}
			sleep(ctx, pauseAfter(err), nil)
			continue
		}
		r.set.rest(ctx, r.woken)
	}
}

func (r *replica) measure(ctx context.Context, p *probe) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	measured := time.Now()
	values, err := ask(limited, p.conn.PgConn(), `select `+GuardColumns)
	var seen Seen
	if err == nil {
		seen, err = ParseSeen(values)
	}
	if err == nil && seen.Standby && !r.knows(seen.Server) {
		err = r.learn(limited, p.conn.PgConn())
	}
	switch {
	case err != nil && limited.Err() != nil:
		return ErrSilent
	case err != nil:
		return err
	case !seen.Standby:
		return errNoStandby
	}
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	known, ok := r.servers[seen.Server]
	if !ok {
		return errUnknown // a pooler asked another server
	}
	r.judge(state{measured: measured, replayed: seen.Replayed, server: seen.Server, facts: known})
	r.set.notify()
	return nil
}

// knows reports whether a server is known to be on the primary's timeline.
func (r *replica) knows(server string) bool {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	known, ok := r.servers[server]
	return ok && known.timeline >= r.set.timeline
}

// judge compares a measurement with what is known about the primary, and publishes the result. The caller holds Set.mu.
func (r *replica) judge(now state) {
	s := r.set
	switch {
	case now.measured.IsZero(): // it was never measured
		return
	case s.system == 0:
		now.why = errNoLog
	case now.system != s.system:
		now.why = errOther
	case now.timeline < s.timeline:
		now.why = errTimeline
	default:
		now.why = nil
		now.asOf = s.log.asOf(now.replayed)
		r.behind = 0
		if last := s.log[len(s.log)-1].inserted; last > now.replayed {
			r.behind = int64(last - now.replayed)
		}
	}
	r.now.Store(&now)
}

// probe is a connection for measurements. Reads do not use it: a measurement must not queue behind reads that wait for it.
type probe struct {
	server Server
	conn   *pgx.Conn
}

// connect connects unless there is an open connection.
func (p *probe) connect(ctx context.Context) (err error) {
	if p.conn != nil && !p.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if p.conn, err = p.server.Connect(ctx); err != nil {
		p.conn = nil
	}
	return err
}

// close closes the connection, if there is one.
func (p *probe) close() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = p.conn.Close(ctx) // after an error too, the connection is closed
	p.conn = nil
}
