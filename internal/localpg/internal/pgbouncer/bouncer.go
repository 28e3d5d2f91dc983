// Package pgbouncer runs PgBouncers of this machine.
package pgbouncer

import (
	"context"
	"fmt"
	"sync"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

// Config says which server a [Bouncer] is in front of, and how it runs.
type Config struct {
	// DSN is the server, as a URL or as keywords and values, with a password. It is required. Clients reach all of the
	// server's databases with the same user and password.
	DSN string

	// Settings are settings as in the section [pgbouncer] of pgbouncer.ini, over those of this package: pool_mode
	// transaction, max_client_conn 1000, default_pool_size 16, and no logging of connections.
	Settings map[string]string

	// Dir is the parent of its directory. The user that runs the program must be able to enter it. Defaults to os.TempDir.
	Dir string

	// Program is the path of the program. Defaults to pgbouncer on the PATH, then in /usr/sbin and /usr/local/sbin.
	Program string
}

// Bouncer is a PgBouncer on this machine in front of a server. It is safe for concurrent use.
type Bouncer struct {
	address        string
	user, password string // of the server
	pid            func() int
	remove         func(context.Context) error

	mu      sync.Mutex // held while Stop runs; guards stopped
	stopped bool
}

// Address returns host and port.
func (b *Bouncer) Address() string { return b.address }

// PID returns the process ID, or 0 if the process has ended.
func (b *Bouncer) PID() int { return b.pid() }

// DSN returns a connection string, a URL with the password in it, for a database of the server through the PgBouncer.
func (b *Bouncer) DSN(database string) string {
	return string(login.URL(b.address, b.user, b.password, database))
}

// Stop ends the process, breaking its connections, and removes its files. It does its work even if ctx has ended. Only
// the first call does anything.
func (b *Bouncer) Stop(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return nil
	}
	b.stopped = true
	if err := cleanup.Do(ctx, b.remove); err != nil {
		return fmt.Errorf("stop PgBouncer: %w", err)
	}
	return nil
}
