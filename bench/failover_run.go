package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// onServer is an action on a server.
type onServer func(*localpg.Server, context.Context) error

// promotion makes the primary of one of two hosts fail under load, and promotes its synchronous standby. back, if not nil,
// then brings the old primary back.
func (b *failoverBench) promotion(ctx context.Context, fault, back onServer) (err error) {
	stop := func(s *localpg.Server) {
		err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	primary, err := b.startServer(ctx)
	if err != nil {
		return err
	}
	defer stop(primary)
	other, err := b.startServer(ctx)
	if err != nil {
		return err
	}
	defer stop(other)
	standby, err := startStandby(ctx, primary)
	if err != nil {
		return err
	}
	defer stop(standby)
	dsn, err := addressed(primary, standby)
	if err != nil {
		return err
	}
	r, err := b.openFailover(ctx, dsn, other.DSN(failoverDatabase))
	if err != nil {
		return err
	}
	defer r.Close()

	load := startFailoverLoad(r, b.cfg.Callers, b.cfg.Pause)
	defer load.end()
	began := time.Now()
	if err := pause(ctx, b.cfg.Turn); err != nil {
		return err
	}
	story := failoverStory{began: began, fault: time.Now()}
	if err := fault(primary, ctx); err != nil {
		return err
	}
	b.cfg.Progress(b.part + ", the primary is gone")
	story.found = b.awaitDown(ctx, r)
	if err := pause(ctx, time.Until(story.fault.Add(b.cfg.Down))); err != nil {
		return err
	}
	if story.able, err = promoteStandby(ctx, standby); err != nil {
		return err
	}
	if story.back, err = load.served(ctx, 0, story.fault.Add(b.cfg.Down)); err != nil {
		return err
	}
	b.cfg.Progress(b.part + ", writes go to the new primary")
	if back != nil {
		if err := back(primary, ctx); err != nil {
			return err
		}
	}
	if err := pause(ctx, b.cfg.Turn); err != nil {
		return err
	}
	load.end()
	figure := b.figure(load, story)
	if err := figure.audit(ctx, load, 0, standby); err != nil {
		return err
	}
	if err := figure.audit(ctx, load, 1, other); err != nil {
		return err
	}
	if back != nil {
		if err := figure.stray(ctx, primary, standby); err != nil {
			return err
		}
	}
	b.report.Parts = append(b.report.Parts, *figure)
	return nil
}

// awaitDown waits until the router has found the first host down, or until that should have happened.
func (b *failoverBench) awaitDown(ctx context.Context, r *router.Router) time.Time {
	until := time.Now().Add(b.cfg.Down)
	for time.Now().Before(until) && pause(ctx, time.Millisecond) == nil {
		if s := r.Stats()[0]; s.Breaker == router.BreakerOpen {
			return s.DownSince
		}
	}
	return until
}

// promoteStandby promotes a standby, and returns when it accepts writes.
func promoteStandby(ctx context.Context, standby *localpg.Server) (time.Time, error) {
	conn, err := pgx.Connect(ctx, standby.DSN(failoverDatabase))
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SELECT pg_promote(wait => false)`); err != nil {
		return time.Time{}, err
	}
	for recovering := true; recovering; {
		if err := conn.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&recovering); err != nil {
			return time.Time{}, err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), nil
}

// cut blocks the network to one of two hosts for a while.
func (b *failoverBench) cut(ctx context.Context) (err error) {
	var servers [2]*localpg.Server
	var hosts []shards.Host
	for i := range servers {
		if servers[i], err = b.startServer(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[i].Stop(context.WithoutCancel(ctx))) }()
		hosts = append(hosts, shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: servers[i].DSN(failoverDatabase)})
	}
	net, err := openNetwork(hosts[:1], 0)
	if err != nil {
		return err
	}
	defer net.close()
	r, err := b.openFailover(ctx, redirected(hosts[0].DSN, net.proxies[0].Listen, ""), hosts[1].DSN)
	if err != nil {
		return err
	}
	defer r.Close()
	load := startFailoverLoad(r, b.cfg.Callers, b.cfg.Pause)
	defer load.end()
	began := time.Now()
	if err := pause(ctx, b.cfg.Turn); err != nil {
		return err
	}
	story := failoverStory{began: began, fault: time.Now()}
	for _, stream := range []string{"upstream", "downstream"} {
		if _, err := net.proxies[0].Toxics.AddToxicJson(strings.NewReader(`{"type": "timeout", "name": "cut ` + stream + `", "stream": "` + stream + `"}`)); err != nil {
			return err
		}
	}
	b.cfg.Progress(b.part + ", nothing comes through")
	story.found = b.awaitDown(ctx, r)
	if err := pause(ctx, time.Until(story.fault.Add(b.cfg.Down))); err != nil {
		return err
	}
	for _, stream := range []string{"upstream", "downstream"} {
		if err := net.proxies[0].Toxics.RemoveToxic(ctx, "cut "+stream); err != nil {
			return err
		}
	}
	story.able = time.Now()
	if story.back, err = load.served(ctx, 0, story.able); err != nil {
		return err
	}
	b.cfg.Progress(b.part + ", it is served again")
	if err := pause(ctx, b.cfg.Turn); err != nil {
		return err
	}
	load.end()
	figure := b.figure(load, story)
	for host, s := range servers {
		if err := figure.audit(ctx, load, host, s); err != nil {
			return err
		}
	}
	b.report.Parts = append(b.report.Parts, *figure)
	return nil
}
