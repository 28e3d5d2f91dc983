package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kiloshard/kiloshard/router/example/load"
	"github.com/kiloshard/kiloshard/shards"
)

// options are the command line's.
type options struct {
	length time.Duration
	rate   int
	users  int

	programs string // where the programs are; "" to build them
}

// try is one run of everything.
type try struct {
	options
	out     io.Writer
	dir     string // of programs, config and logs; removed at the end
	hosts   *hosts
	edited  shards.Config // what map.yaml holds
	service *process
	load    *load.Load
}

// run does everything, in order, and undoes it whatever happens. It returns [errWrites] if a write was lost or doubled.
func run(ctx context.Context, out io.Writer, o options) (err error) {
	t := &try{options: o, out: out}
	defer func() {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		err = errors.Join(err, t.cleanUp(context.WithoutCancel(ctx)))
	}()
	for _, step := range []func(context.Context) error{t.build, t.startHosts, t.makeShards, t.startService, t.use} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say tells what is done next.
func (t *try) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// build builds the two programs that operators and users would have.
func (t *try) build(ctx context.Context) (err error) {
	if t.dir, err = os.MkdirTemp("", "kiloshard-example-"); err != nil || t.programs != "" {
		return err
	}
	t.say("Building kiloshard and the photo service.")
	t.programs = t.dir
	return build(ctx, t.dir)
}

func (t *try) startHosts(ctx context.Context) (err error) {
	t.say("\nStarting two Postgres servers, pg-a and pg-b, and a synchronous standby of pg-b.")
	if t.hosts, err = startHosts(ctx); err != nil {
		return err
	}
	if t.hosts.standby == nil {
		t.say("No standby: for that, Postgres's server programs have to be on this machine. pg-b will be started again instead.")
	}
	return nil
}

// makeShards does what an operator does for a new cluster.
func (t *try) makeShards(ctx context.Context) error {
	if err := t.writeFiles(); err != nil {
		return err
	}
	t.say("")
	for _, command := range [][]string{
		{"map", "import", t.path("map.yaml"), "--why", "a new cluster"},
		{"create"},
		{"migrate", "up"},
	} {
		if err := t.kiloshard(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

func (t *try) startService(ctx context.Context) (err error) {
	t.service, err = startProcess(ctx, t.path("service.log"), t.hosts.environment(),
		filepath.Join(t.programs, "photos"), "-c", t.path("kiloshard.yaml"), "-map-copy", t.path("map.copy"), "-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.say("\nThe service listens on %s, its log is %s.", t.service.firstLine, t.path("service.log"))
	return nil
}

// use has users use the service while things happen to it, and tells what they felt.
func (t *try) use(ctx context.Context) error {
	m, err := t.hosts.first().Map()
	if err != nil {
		return err
	}
	t.load = load.New(load.Config{
		URL: t.service.firstLine, Rate: t.rate, Users: t.users,
		HostOf: func(id shards.ID) string {
			n, err := m.ForID(id)
			if err != nil {
				return "no host"
			}
			return m.Host(n).Name
		},
	})
	defer t.load.Close()
	if err := t.load.Prepare(ctx); err != nil {
		return fmt.Errorf("%w; the log of the service ends with: %s", err, tail(t.path("service.log")))
	}
	t.say("%d users have signed up. Now %s of load, %d requests a second, and:\n", t.users, t.length, t.rate)

	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		failed = t.happen(ctx)
	}()
	t.load.Run(ctx, done)
	if <-done; failed != nil {
		return failed
	}
	t.say("\nThe load is over. Looking at each write.\n")
	checked := t.load.Check(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.load.Report(t.out, checked); err != nil {
		return err
	}
	counted, err := t.countRows(ctx, m)
	if err != nil {
		return err
	}
	if err := t.sayRouter(ctx); err != nil {
		return err
	}
	t.say("")
	if err := t.kiloshard(ctx, "verify"); err != nil {
		return err
	}
	if err := t.service.end(); err != nil {
		return fmt.Errorf("the service: %w", err)
	}
	if !checked.OK() || !counted {
		return errWrites
	}
	t.say("\nThe service has ended in good order. Every acknowledged write is there, once.")
	return nil
}

// cleanUp ends and removes everything.
func (t *try) cleanUp(ctx context.Context) error {
	var errs []error
	if t.service != nil {
		t.service.kill()
	}
	if t.hosts != nil {
		errs = append(errs, t.hosts.stop(ctx))
	}
	if t.dir != "" {
		errs = append(errs, os.RemoveAll(t.dir))
	}
	return errors.Join(errs...)
}

func (t *try) path(name string) string { return filepath.Join(t.dir, name) }
