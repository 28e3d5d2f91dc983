package router

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// silentAfter is how long a replica may take for a measurement. One that takes longer is not used, and those who wait
	// for it go elsewhere.
	silentAfter = 400 * time.Millisecond
	// knownFor is for how long a measurement counts, if a reader does not want it younger.
	knownFor = 750 * time.Millisecond
	// hurry is the pause between two measurements while somebody waits for news.
	hurry = time.Millisecond
	// reachLimit is the time for a connection that measurements are to be made on.
	reachLimit = 3 * time.Second
	// partLimit is the time for closing it.
	partLimit = time.Second
)

var (
	errReplicaSilent = errors.New("the replica does not answer")
	errOther         = errors.New("the replica is of another cluster than the primary")
	errTimeline      = errors.New("the replica has not been seen to follow the primary since that was promoted")
	errNoLog         = errors.New("the primary is not one, or has not been asked yet")
	errNotPrimary    = errors.New("the primary is a standby")
)

// watch begins to measure the replicas, until nobody has read for a while, or close. The caller holds mu.
func (rs *replicas) watch() {
	ctx, stop := context.WithCancel(rs.base)
	rs.stop = stop
	rs.watching.Store(true)
	rs.work.Go(func() {
		rs.watchPrimary(ctx)
		stop()
	})
	for _, r := range rs.all {
		rs.work.Go(func() { r.watch(ctx) })
	}
}

// idle ends the measuring if nobody has read for a while.
func (rs *replicas) idle() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if int64(time.Since(clock))-rs.wanted.Load() < rs.lasts.Load() {
		return false
	}
	rs.watching.Store(false)
	return true
}

// pause waits until the next measurement is due, or ctx has ended. One of a replica, which may be kicked, is due soon when
// somebody waits for news of it: however many do, it is measured no more often.
func (rs *replicas) pause(ctx context.Context, kicked <-chan struct{}) {
	long := time.Duration(rs.every.Load())
	if kicked != nil && rs.waiting.Load() > 0 {
		long, kicked = hurry, nil
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-kicked:
	case <-ctx.Done():
	}
}

// watchPrimary notes where the primary's log is, again and again.
func (rs *replicas) watchPrimary(ctx context.Context) {
	p := probe{host: rs.primary}
	defer p.part()
	for !rs.idle() && ctx.Err() == nil {
		if err := rs.lookAtPrimary(ctx, &p); err != nil {
			p.part()
			rs.mu.Lock()
			rs.trouble = err
			rs.mu.Unlock()
			pause(ctx, untilAgain(err))
			continue
		}
		rs.pause(ctx, nil)
	}
}

func (rs *replicas) lookAtPrimary(ctx context.Context, p *probe) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	const query = `select not pg_is_in_recovery(), coalesce(substr(pg_walfile_name(place), 1, 8), ''), coalesce((place - '0/0')::int8, 0),
	coalesce((flushed - '0/0')::int8, 0), current_setting('wal_block_size')::int8,
	(extract(epoch from current_setting('wal_writer_delay')::interval) * 1000000)::int8
	from (select case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() end as place,
		case when not pg_is_in_recovery() then pg_current_wal_flush_lsn() end as flushed) as log`
	var primary bool
	var timeline string
	var place, flushed, block, delay int64
	m := moment{at: time.Now()}
	if err := p.conn.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&primary, &timeline, &place, &flushed, &block, &delay); err != nil {
		return err
	}
	if !primary {
		return errNotPrimary
	}
	m.inserted, m.flushed = recordEnd(place, block), uint64(flushed)
	m.slack = 3 * time.Duration(delay) * time.Microsecond
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.system != p.system {
		rs.log = nil
	}
	rs.log.add(m)
	rs.system, rs.line, rs.trouble = p.system, timelineOf(timeline), nil
	for _, r := range rs.all {
		if known := r.now.Load(); known != nil {
			r.judge(*known)
		}
	}
	rs.tell()
	return nil
}

// watch measures a replica, again and again.
func (r *replica) watch(ctx context.Context) {
	p := probe{}
	defer p.part()
	for ctx.Err() == nil {
		if err := r.measure(ctx, &p); err != nil && ctx.Err() == nil {
			p.part()
			r.of.mu.Lock()
			r.set(standing{why: err})
			r.of.mu.Unlock()
			if errors.Is(err, errReplicaSilent) {
				r.begin() // whoever waits for it
			}
			pause(ctx, untilAgain(err))
			continue
		}
		r.of.pause(ctx, r.kicked)
	}
}

// untilAgain returns how long after a measurement that has failed there is another one, on a new connection, however much
// it is waited for: a server that starts has better things to do, and one that has changed its role may well keep it.
func untilAgain(err error) time.Duration {
	if errors.Is(err, errNoStandby) || errors.Is(err, errNotPrimary) {
		return standbyPace
	}
	return downPace
}

func (r *replica) measure(ctx context.Context, p *probe) (err error) {
	if p.host == nil {
		if p.host, err = r.open(); err != nil {
			return err
		}
	}
	if err := p.reach(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	const query = `select pg_is_in_recovery(), coalesce((pg_last_wal_replay_lsn() - '0/0')::int8, 0)`
	var standby bool
	var replayed int64
	s := standing{measured: time.Now(), system: p.system}
	err = p.conn.QueryRow(limited, query, pgx.QueryExecModeExec).Scan(&standby, &replayed)
	if err == nil && standby && r.timeline.Load() < r.of.primaryLine() {
		err = r.learnTimeline(limited, p.conn)
	}
	switch {
	case err != nil && limited.Err() != nil:
		return errReplicaSilent
	case err != nil:
		return err
	case !standby:
		return errNoStandby
	}
	s.replayed = uint64(replayed)
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.judge(s)
	r.of.tell()
	return nil
}

func (rs *replicas) primaryLine() uint32 {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.line
}

// learnTimeline asks a replica for the timelines that its data are known to be of. A replica that had got further than
// a primary when that was promoted has changes that this one never had; it does not follow this one's timeline, but may
// seem to, going by places in the log.
func (r *replica) learnTimeline(ctx context.Context, conn *pgx.Conn) error {
	const query = `select greatest(1, (select max(received_tli) from pg_stat_wal_receiver where status = 'streaming'),
	(select timeline_id from pg_control_checkpoint()), (select min_recovery_end_timeline from pg_control_recovery()))::int8`
	var timeline int64
	if err := conn.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&timeline); err != nil {
		return err
	}
	r.timeline.Store(uint32(timeline))
	return nil
}

// judge publishes a measurement, with what it means by what is known of the primary. The caller holds replicas.mu.
func (r *replica) judge(s standing) {
	switch {
	case s.measured.IsZero(): // there was none
		return
	case r.of.system == 0:
		s.why = errNoLog
	case s.system != r.of.system:
		s.why = errOther
	case r.timeline.Load() < r.of.line:
		s.why = errTimeline
	default:
		s.why = nil
		s.asOf = r.of.log.asOf(s.replayed)
		if last := r.of.log[len(r.of.log)-1].inserted; last > s.replayed {
			r.behind = int64(last - s.replayed)
		} else {
			r.behind = 0
		}
	}
	r.set(s)
}

// probe is a connection for measurements. It is none of the pool's: a measurement must not wait behind those whose way
// it is to decide.
type probe struct {
	host   *host
	conn   *pgx.Conn
	system int64 // the cluster of the server
}

// reach connects if there is no connection.
func (p *probe) reach(ctx context.Context) error {
	if p.conn != nil && !p.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	pool := p.host.lines.pool.Config()
	err := p.host.login.Try(ctx, func(ctx context.Context) (err error) {
		config := pool.ConnConfig.Copy()
		config.Tracer = nil
		if pool.BeforeConnect != nil {
			if err := pool.BeforeConnect(ctx, config); err != nil {
				return err
			}
		}
		p.conn, err = pgx.ConnectConfig(ctx, config)
		return err
	})
	if err != nil {
		p.conn = nil
		return err
	}
	if err := p.conn.QueryRow(ctx, `select system_identifier from pg_control_system()`, pgx.QueryExecModeExec).Scan(&p.system); err != nil {
		return err
	}
	return nil
}

// part closes the connection, if there is one.
func (p *probe) part() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partLimit)
	defer cancel()
	_ = p.conn.Close(ctx) // whatever it says, the connection is closed
	p.conn = nil
}
