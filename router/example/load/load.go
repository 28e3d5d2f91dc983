package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

const (
	defaultRate     = 200
	defaultUsers    = 200
	defaultPatience = 20 * time.Second
	defaultUnderWay = 2000
)

// Config says what load there is to be.
type Config struct {
	URL      string        // of the service, such as http://127.0.0.1:8080
	Rate     int           // requests a second. Defaults to 200
	Users    int           // who sign up before it begins. Defaults to 200
	Patience time.Duration // for how long a user tries again. Defaults to 20 s
	UnderWay int           // requests at the same time, past which those that are due wait. Defaults to 2000

	// HostOf tells on which host an ID lives, to tell the hosts apart in the report. Defaults to one for all.
	HostOf func(shards.ID) string
}

// Load is the use of a service by many users. All of its methods but Prepare, Run and Check, which come one after the
// other, are safe for concurrent use.
type Load struct {
	cfg    Config
	client *http.Client
	began  time.Time
	ran    time.Duration
	books  books

	mu       sync.Mutex // guards what follows
	attempts []attempt
	requests []request
	events   []event
}

// New returns a load that has not begun.
func New(cfg Config) *Load {
	if cfg.Rate <= 0 {
		cfg.Rate = defaultRate
	}
	if cfg.Users <= 0 {
		cfg.Users = defaultUsers
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.UnderWay <= 0 {
		cfg.UnderWay = defaultUnderWay
	}
	if cfg.HostOf == nil {
		cfg.HostOf = func(shards.ID) string { return "all" }
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}
	return &Load{cfg: cfg, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}, began: time.Now()}
}

// Close closes the connections to the service.
func (l *Load) Close() { l.client.CloseIdleConnections() }

// Prepare signs up the first users, each with a photo, a board and some friends.
func (l *Load) Prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) result{l.signUp, l.post, l.follow, l.follow, l.follow, l.board} {
		errs := make([]error, l.cfg.Users)
		inParallel(l.cfg.Users, func(i int) {
			if r := step(ctx); r.failure != "" {
				errs[i] = errors.New(r.failure)
			}
		})
		if err := cmp.Or(errs...); err != nil { // one of many that are alike
			return fmt.Errorf("before the load: %w", err)
		}
	}
	return nil
}

// Run begins requests until done is closed, or ctx ends, and returns when all of them have ended.
func (l *Load) Run(ctx context.Context, done <-chan struct{}) {
	l.mu.Lock()
	l.began, l.attempts, l.requests = time.Now(), nil, nil
	l.mu.Unlock()
	var all sync.WaitGroup
	places := make(chan struct{}, l.cfg.UnderWay)
	pause := time.Second / time.Duration(l.cfg.Rate)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due, over := time.Duration(0), false; !over; due += pause {
		timer.Reset(time.Until(l.began.Add(due)))
		select {
		case <-timer.C:
			places <- struct{}{}
			all.Go(func() {
				l.one(ctx, due)
				<-places
			})
		case <-done:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
	l.ran = time.Since(l.began)
	all.Wait()
}

// inParallel calls fn with 0 to n-1, several at a time.
func inParallel(n int, fn func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 16 {
		all.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}
