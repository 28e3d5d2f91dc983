package localpg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "postgres" // has a database of the same name

	readyLimit  = 5 * time.Minute       // for a server to answer; one that has ended is seen before
	readyEvery  = 20 * time.Millisecond // between two attempts
	dialTimeout = 20 * time.Second      // of one attempt
)

// CreateDatabase creates an empty database and returns a connection string for it. On a server that came by its DSN,
// Stop drops it again. When ctx ends before the server has the statement, nothing is created; from then on ctx no
// longer matters, so that no database is left that nobody knows of.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return "", ErrStopped
	}
	conn, err := s.engine.conn().connect(ctx)
	if err != nil {
		return "", fmt.Errorf("create database %q: %w", name, err)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	defer conn.Close(limited)
	statement := "create database " + pgx.Identifier{name}.Sanitize()
	var encoding string
	if err := conn.QueryRow(limited, "select pg_encoding_to_char(encoding) from pg_database where datname = 'template1'").Scan(&encoding); err != nil {
		return "", fmt.Errorf("create database %q: %w", name, err)
	}
	if encoding != "UTF8" { // a server that came by its DSN, made where no locale was set
		statement += " template template0 encoding 'UTF8' locale 'C'"
	}
	if _, err := conn.Exec(limited, statement); err != nil {
		return "", fmt.Errorf("create database %q: %w", name, err)
	}
	s.databases = append(s.databases, name)
	return s.DSN(name), nil
}

// dropDatabases drops what CreateDatabase made, unless the whole server goes away anyhow.
func (s *Server) dropDatabases(ctx context.Context) error {
	if s.source != DSN || len(s.databases) == 0 {
		return nil
	}
	conn, err := s.engine.conn().connect(ctx)
	if err != nil {
		return fmt.Errorf("drop databases: %w", err)
	}
	defer conn.Close(ctx)
	var errs []error
	for _, name := range s.databases {
		query := "drop database if exists " + pgx.Identifier{name}.Sanitize() + " with (force)"
		if _, err := conn.Exec(ctx, query); err != nil {
			errs = append(errs, fmt.Errorf("drop database %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// connect connects to the database that is always there, or to the one that a caller's connection string names.
func (c connString) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(string(c))
	if err != nil {
		return nil, errBadDSN
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}

// serverVersion returns the version of the server, as in "15.18", once the server answers. It stops trying when ctx
// ends, after readyLimit, or when alive returns an error, which says why the server is gone.
func (c connString) serverVersion(ctx context.Context, alive func(context.Context) error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		version, err := c.askVersion(ctx)
		if err == nil {
			return version, nil
		}
		if gone := alive(ctx); gone != nil {
			return "", gone
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no answer: %w (%w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (c connString) askVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var version string
	query := "select split_part(current_setting('server_version'), ' ', 1)"
	if err := conn.QueryRow(ctx, query).Scan(&version); err != nil {
		return "", err
	}
	return version, nil
}
