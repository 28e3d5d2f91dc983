package localpg

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

// EnableTLS makes the server accept connections with TLS, in addition to those without. Its certificate is for the given names,
// from the authority, and it trusts client certificates from the authority. EnableTLS may be called again, and takes effect for
// new connections. It writes files in the data directory, so for a server that came by its DSN the error is
// errors.ErrUnsupported.
func (s *Server) EnableTLS(ctx context.Context, a *Authority, names ...string) error {
	return s.reconfigure(ctx, "enable TLS", func(conn *pgx.Conn) error {
		cert, key, err := a.Issue(names...)
		if err != nil {
			return err
		}
		for name, content := range map[string][]byte{"kiloshard.crt": cert, "kiloshard.key": key, "kiloshard-ca.crt": a.PEM} {
			if err := writeData(ctx, conn, name, content); err != nil {
				return err
			}
		}
		for _, setting := range []string{"ssl_cert_file = 'kiloshard.crt'", "ssl_key_file = 'kiloshard.key'", "ssl_ca_file = 'kiloshard-ca.crt'", "ssl = on"} {
			if _, err := conn.Exec(ctx, "alter system set "+setting); err != nil {
				return err
			}
		}
		return nil
	})
}

// AllowFirst adds lines at the beginning of the server's pg_hba.conf. They take effect for new connections. For a server that
// came by its DSN the error is errors.ErrUnsupported.
func (s *Server) AllowFirst(ctx context.Context, lines string) error {
	return s.reconfigure(ctx, "change pg_hba.conf", func(conn *pgx.Conn) error {
		var now string
		if err := conn.QueryRow(ctx, "select pg_catalog.pg_read_file('pg_hba.conf')").Scan(&now); err != nil {
			return err
		}
		return writeData(ctx, conn, "pg_hba.conf", []byte(lines+"\n"+now))
	})
}

// reconfigure changes configuration files of a server that is ours, and waits until new connections see the changes.
func (s *Server) reconfigure(ctx context.Context, what string, change func(*pgx.Conn) error) error {
	return s.change(what, func() error {
		if s.source == DSN {
			return errNotOurs
		}
		conn, err := s.engine.DSN().Connect(ctx)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		if err := change(conn); err != nil {
			return err
		}
		return reload(ctx, conn, s.engine.DSN())
	})
}

// writeData writes a file that only the server can read in its data directory, which may be in a container.
func writeData(ctx context.Context, conn *pgx.Conn, name string, content []byte) error {
	_, err := conn.Exec(ctx, fmt.Sprintf(`copy (select '%s') to program 'umask 077 && base64 -d > %s.new && mv %s.new %s'`,
		base64.StdEncoding.EncodeToString(content), name, name, name))
	return err
}

// reload makes the server read its configuration, and waits until new connections have it. Existing ones get it later.
func reload(ctx context.Context, conn *pgx.Conn, server login.DSN) error {
	const query = "select pg_catalog.pg_conf_load_time()::text"
	var before string
	if err := conn.QueryRow(ctx, query).Scan(&before); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "select pg_catalog.pg_reload_conf()"); err != nil {
		return err
	}
	for {
		after, err := loadTime(ctx, server, query)
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

// loadTime asks in a new connection.
func loadTime(ctx context.Context, server login.DSN, query string) (at string, err error) {
	conn, err := server.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&at)
	return at, err
}
