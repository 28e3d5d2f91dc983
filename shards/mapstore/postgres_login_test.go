package mapstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// sentinel is a password that no output may show.
const sentinel = "s3ntinel-pa55word"

// guarded is a server with TLS under a certificate for localhost, and a directory with a config's files.
type guarded struct {
	*localpg.Server
	authority *localpg.Authority
	dir       string
}

// TestPostgresLogin has stores log in on a server of its own in all the ways that hosts have.
func TestPostgresLogin(t *testing.T) {
	t.Parallel()
	config := shardtest.ServerConfig()
	config.DSN = "" // a caller's server would have to be changed
	server, err := localpg.Start(newContext(t), config)
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
	authority, err := localpg.NewAuthority()
	noError(t, err)
	noError(t, server.EnableTLS(newContext(t), authority, "localhost"))
	noError(t, server.AllowFirst(newContext(t), "hostssl all by_cert all cert\nhostssl all only_tls all scram-sha-256\nhost all by_cert,only_tls all reject"))
	for name, test := range map[string]func(*testing.T, guarded){
		"TLS": testStoreTLS, "password changes": testStorePasswordChanges,
		"password command": testStorePasswordCommand, "errors": testStoreErrors,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, guarded{server, authority, t.TempDir()})
		})
	}
}

// role makes a role with a database, in which it may make the table, and returns the DSN of the role with what is to be
// in it, and one of the server's own.
func (g guarded) role(t *testing.T, name string) (dsn func(password, host, query string) string, database string) {
	t.Helper()
	database = newDatabase(t, g.Server)
	execSQL(t, database, fmt.Sprintf("create role %s login password '%s' in role current_user", name, sentinel))
	return func(password, host, query string) string {
		u, err := url.Parse(database)
		noError(t, err)
		if u.User = url.User(name); password != "" {
			u.User = url.UserPassword(name, password)
		}
		if host != "" {
			u.Host = host + ":" + u.Port()
		}
		u.RawQuery = query
		return u.String()
	}, database
}

func (g guarded) write(t *testing.T, name, content string) {
	t.Helper()
	noError(t, os.WriteFile(filepath.Join(g.dir, name), []byte(content), 0o600))
}

// config loads a config whose store has a DSN, and whose files are beside it.
func (g guarded) config(t *testing.T, dsn string) shards.Config {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), "/", "_") + ".yaml"
	g.write(t, name, fmt.Sprintf("cluster: photos\nstore: {kind: postgres, dsn: %q}\n", dsn))
	cfg, err := shards.Load(filepath.Join(g.dir, name), nil)
	noError(t, err)
	return cfg
}

// use makes a version, and sees it by a watch.
func use(t *testing.T, s mapstore.Store, from int) {
	t.Helper()
	w := watch(t, s, from)
	swap(t, s, from, from+1)
	checkEntry(t, w.entry(t), from+1, from+1)
	checkEntry(t, load(t, s), from+1, from+1)
}

func testStoreTLS(t *testing.T, g guarded) {
	g.write(t, "ca.pem", string(g.authority.PEM))
	other, err := localpg.NewAuthority()
	noError(t, err)
	g.write(t, "other.pem", string(other.PEM))
	cert, key, err := g.authority.Issue("by_cert")
	noError(t, err)
	g.write(t, "app.crt", string(cert))
	g.write(t, "app.key", string(key))
	byCert, _ := g.role(t, "by_cert")
	onlyTLS, _ := g.role(t, "only_tls")
	const full = "sslmode=verify-full&sslrootcert=ca.pem"
	use(t, open(t, g.config(t, byCert("", "localhost", full+"&sslcert=app.crt&sslkey=app.key"))), 0)
	use(t, open(t, g.config(t, onlyTLS(sentinel, "localhost", full))), 0)
	for name, test := range map[string]struct{ dsn, want string }{
		"wrong CA":       {onlyTLS(sentinel, "localhost", "sslmode=verify-full&sslrootcert=other.pem"), "expected sslrootcert to name the file of the CA"},
		"wrong name":     {onlyTLS(sentinel, "127.0.0.1", full), "expected the DSN to name the host as the certificate does"},
		"no certificate": {byCert("", "localhost", full), "expected a client certificate"},
		"no such file":   {onlyTLS(sentinel, "localhost", "sslmode=verify-full&sslrootcert=none.pem"), "sslrootcert: the file cannot be read: " + g.dir},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := mapstore.Open(t.Context(), g.config(t, test.dsn), mapstore.Options{})
			if err == nil {
				_, err = s.Load(newContext(t))
				noError(t, s.Close())
			}
			if text := fmt.Sprint(err); !strings.Contains(text, test.want) || strings.Contains(text, sentinel) {
				t.Errorf("got %v, expected %q", err, test.want)
			}
		})
	}
}

// A password changes in the file first, and then on the server, while connections keep ending: no call fails, and the
// watch continues.
func testStorePasswordChanges(t *testing.T, g guarded) {
	const next = "n3xt-" + sentinel
	g.write(t, "pgpass", "*:*:*:*:"+sentinel)
	dsn, admin := g.role(t, "changes")
	s := open(t, g.config(t, dsn("", "", "sslmode=disable&passfile=pgpass")), notified)
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	version := 1
	check := func(when string) {
		t.Helper()
		execSQL(t, admin, "select pg_terminate_backend(pid, 30000) from pg_stat_activity where usename = 'changes'")
		checkEntry(t, load(t, s), version, version)
		swap(t, s, version, version+1)
		version++
		for {
			e, err, ok := w.next()
			if errors.Is(err, connect.ErrCredentials) || !ok {
				t.Fatalf("%s: the watch yields %v", when, err)
			}
			if err == nil {
				checkEntry(t, e, version, version)
				return
			}
		}
	}
	check("before")
	g.write(t, "pgpass", "*:*:*:*:"+next)
	check("changed where it is kept")
	check("again")
	execSQL(t, admin, "alter role changes password '"+next+"'")
	check("changed on the server too")
}

func testStorePasswordCommand(t *testing.T, g guarded) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	g.write(t, "token", sentinel+"\n")
	dsn, admin := g.role(t, "by_command")
	command := connect.Command{Words: []string{"sh", "-c", `echo "$KILOSHARD_HOST $PGUSER" >> requests; cat token`}, Dir: g.dir}
	s := open(t, g.config(t, dsn("", "", "sslmode=disable")), func(o *mapstore.Options) { o.Credentials = command.Credentials })
	use(t, s, 0)
	execSQL(t, admin, "alter role by_command password '2nd-"+sentinel+"'")
	g.write(t, "token", "2nd-"+sentinel+"\n")
	execSQL(t, admin, "select pg_terminate_backend(pid, 30000) from pg_stat_activity where usename = 'by_command'")
	use(t, s, 1)
	requests, err := os.ReadFile(filepath.Join(g.dir, "requests"))
	noError(t, err)
	if n := strings.Count(string(requests), "store by_command\n"); n < 4 {
		t.Errorf("the command ran %d times for the store, expected once for each connection:\n%s", n, requests)
	}
	g.write(t, "token", "")
	_, err = openPostgres(t, dsn("", "", "sslmode=disable"), func(o *mapstore.Options) { o.Credentials = command.Credentials }).Load(newContext(t))
	if err == nil || !strings.Contains(err.Error(), "password_command: sh printed nothing") || !strings.Contains(err.Error(), "store postgres 1") {
		t.Errorf("got %v", err)
	}
}

// An error names the address once, and no password.
func testStoreErrors(t *testing.T, g guarded) {
	const wrong = sentinel + "-wrong"
	dsn, _ := g.role(t, "refused")
	u, err := url.Parse(dsn("", "", ""))
	noError(t, err)
	for name, test := range map[string]struct{ dsn, address, want string }{
		"refused":        {dsn(wrong, "", ""), u.Host, "expected the password of user refused"},
		"down":           {"postgres://app:" + wrong + "@127.0.0.1:1/maps", "127.0.0.1:1", "127.0.0.1:1: connect: connection refused"},
		"down, of two":   {"postgres://app:" + wrong + "@127.0.0.1:1,127.0.0.1:2/maps", "127.0.0.1:2", "127.0.0.1:1: connect: connection refused; 127.0.0.1:2: connect: "},
		"bad":            {"postgres://app:" + wrong + "@127.0.0.1:port/maps", "127.0.0.1", shards.ErrBadDSN.Error()},
		"no such socket": {"host=/nowhere user=app dbname=maps password=" + wrong, "/nowhere/.s.PGSQL.5432", "/nowhere/.s.PGSQL.5432: connect: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var all []error
			s, err := mapstore.Open(t.Context(), g.config(t, test.dsn), mapstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				all = append(all, err)
			} else {
				_, err := s.Load(newContext(t))
				_, swapErr := s.Swap(newContext(t), 0, newChange(1))
				all = append(all, err, swapErr)
				for _, err := range s.Watch(newContext(t), 0) {
					all = append(all, err)
					break
				}
				noError(t, s.Close())
			}
			for _, err := range all {
				text := fmt.Sprintf("%v", err)
				if !strings.Contains(text, test.want) || strings.Count(text, test.address) > 1 || strings.Contains(text, "\n") {
					t.Errorf("got %s, expected %q, and the address once", text, test.want)
				}
				if text += fmt.Sprintf("%+v %#v", err, err) + log.String(); strings.Contains(text, sentinel) {
					t.Errorf("the password is in %s", text)
				}
				if errors.Is(err, mapstore.ErrOutcomeUnknown) {
					t.Errorf("nothing was sent, and yet: %v", err)
				}
			}
		})
	}
}
