package localpg

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// PgBouncerConfig says what a [PgBouncer] stands in front of, and how.
type PgBouncerConfig struct {
	// DSN is the server, as a URL or as keywords and values, with a password. It is required. Clients reach all of the
	// server's databases with the same user and password.
	DSN string

	// Settings are settings as in the section [pgbouncer] of pgbouncer.ini, over those of this package: pool_mode
	// transaction, max_client_conn 1000, default_pool_size 16, and no logging of connections.
	Settings map[string]string

	// Dir is the parent of its directory; the user that it runs as must be able to enter it. Defaults to os.TempDir.
	Dir string

	// Program is the path of the program. Defaults to pgbouncer on the PATH, then in /usr/sbin and /usr/local/sbin.
	Program string

	// Logger gets what is started. Defaults to none.
	Logger *slog.Logger
}

// A PgBouncer is a PgBouncer on this machine in front of a server. It is safe for concurrent use.
type PgBouncer struct {
	version        string
	user, password string // of the server
	engine         interface {
		address() string
		pid() int
		remove(ctx context.Context) error
	}

	mu      sync.Mutex // held for the length of Stop; guards what follows
	stopped bool
}

// StartPgBouncer starts the pgbouncer of this machine on a free port of 127.0.0.1 and returns when a statement sent
// through it is answered. It runs as the user that a server would run as, and on Linux the kernel ends it when this
// process dies. Passwords are in a file that only this user can read, and in no argument list, log or error.
//
// ctx governs the start only. The error is [ErrUnavailable] when there is no pgbouncer on this machine. After an error
// nothing is left.
func StartPgBouncer(ctx context.Context, cfg PgBouncerConfig) (*PgBouncer, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := startPgBouncer(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	cfg.Logger.DebugContext(ctx, "pgbouncer started", slog.String("version", b.version), slog.String("address", b.Address()))
	return b, nil
}

// Version returns the version of the program as in "1.18.0".
func (b *PgBouncer) Version() string { return b.version }

// Address returns host and port.
func (b *PgBouncer) Address() string { return b.engine.address() }

// PID returns the process ID, or 0 if the process has ended.
func (b *PgBouncer) PID() int { return b.engine.pid() }

// DSN returns a connection string, a URL with the password in it, for a database of the server by way of the
// PgBouncer.
func (b *PgBouncer) DSN(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(b.user, b.password), Host: b.Address(), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the process, breaking its connections, and removes its files. It does its work even if ctx has ended. Only
// the first call does anything.
func (b *PgBouncer) Stop(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return nil
	}
	b.stopped = true
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	if err := b.engine.remove(limited); err != nil {
		return fmt.Errorf("stop PgBouncer: %w", err)
	}
	return nil
}

// oursOfPgBouncer are the settings that this package gives.
var oursOfPgBouncer = []string{
	"auth_file", "auth_type", "listen_addr", "listen_port", "logfile", "pidfile", "unix_socket_dir", "user",
}

// ini returns the configuration file of a PgBouncer.
func (cfg PgBouncerConfig) ini(server *pgx.ConnConfig, port int, users string) (string, error) {
	settings := map[string]string{
		"pool_mode":         "transaction",
		"max_client_conn":   "1000",
		"default_pool_size": "16",
		"log_connections":   "0", "log_disconnections": "0",
	}
	for name, value := range cfg.Settings {
		switch {
		case !settingName.MatchString(name):
			return "", fmt.Errorf("setting %q: not the name of a setting", name)
		case slices.Contains(oursOfPgBouncer, strings.ToLower(name)):
			return "", fmt.Errorf("setting %s: chosen by localpg", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			return "", fmt.Errorf("setting %s: the value has more than one line", name)
		}
		settings[strings.ToLower(name)] = value
	}
	// Every password in the file of users is a plain one: PgBouncer needs it to log in at the server.
	settings["auth_type"], settings["auth_file"] = "scram-sha-256", users
	settings["listen_addr"], settings["listen_port"], settings["unix_socket_dir"] = "127.0.0.1", fmt.Sprint(port), ""
	var text strings.Builder
	quoted := strings.ReplaceAll(server.Host, "'", "''")
	fmt.Fprintf(&text, "[databases]\n* = host='%s' port=%d\n[pgbouncer]\n", quoted, server.Port)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = %s\n", name, settings[name])
	}
	return text.String(), nil
}

// usersFile returns what the file of users has in it.
func usersFile(server *pgx.ConnConfig) string {
	quote := strings.NewReplacer(`"`, `""`)
	return fmt.Sprintf("\"%s\" \"%s\"\n", quote.Replace(server.User), quote.Replace(server.Password))
}
