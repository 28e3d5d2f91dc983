package localpg

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// EnableTLS has the server take connections with TLS, beside those without, under a certificate of the authority for the
// given names. Clients whose certificates the authority has signed are known. It may be called again, and holds from the
// next connection on. It needs a server that is ours, for it writes files beside the server's data: for one that came by
// its DSN the error is errors.ErrUnsupported.
func (s *Server) EnableTLS(ctx context.Context, a *Authority, names ...string) error {
	if s.source == DSN {
		return fmt.Errorf("enable TLS: %w", errNotOurs)
	}
	cert, key, err := a.Issue(names...)
	if err != nil {
		return fmt.Errorf("enable TLS: %w", err)
	}
	conn, err := s.engine.conn().connect(ctx)
	if err != nil {
		return fmt.Errorf("enable TLS: %w", err)
	}
	defer conn.Close(ctx)
	for name, content := range map[string][]byte{"kiloshard.crt": cert, "kiloshard.key": key, "kiloshard-ca.crt": a.PEM} {
		if err := writeBeside(ctx, conn, name, content); err != nil {
			return fmt.Errorf("enable TLS: %w", err)
		}
	}
	for _, setting := range []string{"ssl_cert_file = 'kiloshard.crt'", "ssl_key_file = 'kiloshard.key'", "ssl_ca_file = 'kiloshard-ca.crt'", "ssl = on"} {
		if _, err := conn.Exec(ctx, "alter system set "+setting); err != nil {
			return fmt.Errorf("enable TLS: %w", err)
		}
	}
	return s.reload(ctx, conn)
}

// AllowFirst puts lines in front of the server's pg_hba.conf, and holds from the next connection on. Like
// [Server.EnableTLS] it needs a server that is ours.
func (s *Server) AllowFirst(ctx context.Context, lines string) error {
	if s.source == DSN {
		return fmt.Errorf("change pg_hba.conf: %w", errNotOurs)
	}
	conn, err := s.engine.conn().connect(ctx)
	if err != nil {
		return fmt.Errorf("change pg_hba.conf: %w", err)
	}
	defer conn.Close(ctx)
	var now string
	if err := conn.QueryRow(ctx, "select pg_catalog.pg_read_file('pg_hba.conf')").Scan(&now); err != nil {
		return fmt.Errorf("change pg_hba.conf: %w", err)
	}
	if err := writeBeside(ctx, conn, "pg_hba.conf", []byte(lines+"\n"+now)); err != nil {
		return fmt.Errorf("change pg_hba.conf: %w", err)
	}
	return s.reload(ctx, conn)
}

// writeBeside writes a file that only the server can read into its data directory, in whatever machine that is.
func writeBeside(ctx context.Context, conn *pgx.Conn, name string, content []byte) error {
	_, err := conn.Exec(ctx, fmt.Sprintf(`copy (select '%s') to program 'umask 077 && base64 -d > %s.new && mv %s.new %s'`,
		base64.StdEncoding.EncodeToString(content), name, name, name))
	return err
}

// reload has the server read its settings, and waits until new sessions have them: those that are there get them later.
func (s *Server) reload(ctx context.Context, conn *pgx.Conn) error {
	const query = "select pg_catalog.pg_conf_load_time()::text"
	var before string
	if err := conn.QueryRow(ctx, query).Scan(&before); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "select pg_catalog.pg_reload_conf()"); err != nil {
		return err
	}
	for {
		after, err := s.loadTime(ctx, query)
		var refused *pgconn.PgError
		switch {
		case err == nil && after != before:
			return nil
		case err != nil && !errors.As(err, &refused):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Server) loadTime(ctx context.Context, query string) (at string, err error) {
	conn, err := s.engine.conn().connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&at)
	return at, err
}
