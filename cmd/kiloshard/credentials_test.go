package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// sentinel is the password that nobody may see.
const sentinel = "s3ntinel-pa55word"

// secretServer is a server with TLS on which the role app logs in with the sentinel, and app_cert with a certificate.
type secretServer struct {
	*localpg.Server
	authority  *localpg.Authority
	host, port string
}

func startSecret(t *testing.T) *secretServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	config := shardtest.ServerConfig()
	config.DSN = "" // the tests change what a caller's server would not like
	s := &secretServer{}
	var err error
	if s.Server, err = localpg.Start(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if s.authority, err = localpg.NewAuthority(); err != nil {
		t.Fatal(err)
	}
	if err := s.EnableTLS(ctx, s.authority, "localhost"); err != nil {
		t.Fatal(err)
	}
	if err := s.AllowFirst(ctx, "hostssl all app_cert all cert\nhost all app_cert all reject"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.DSN("postgres"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	s.host, s.port = u.Hostname(), u.Port()
	s.exec(t, fmt.Sprintf("create role app login password '%s' in role postgres", sentinel))
	s.exec(t, "create role app_cert login in role postgres")
	return s
}

func (s *secretServer) exec(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// secretConfig is a directory with a config and its files, and an environment.
type secretConfig struct {
	dir string
	env []string
}

// secretDir writes kiloshard.yaml for two hosts whose DSNs are dsn with DATABASE replaced, and other files beside it.
func secretDir(t *testing.T, databases [2]string, dsn, more string, files map[string]string, env ...string) secretConfig {
	t.Helper()
	c := secretConfig{dir: t.TempDir(), env: env}
	all := map[string]string{
		"migrations/001_users.sql": "create table users (id bigint primary key default next_id(), name text);\n",
		"kiloshard.yaml": fmt.Sprintf(`cluster: photos
shards: 4
epoch: 2026-01-01T00:00:00Z
hosts:
  - {name: pg-a, dsn: %q}
  - {name: pg-b, dsn: %q}
placement:
  - {shards: 0-1, host: pg-a}
  - {shards: 2-3, host: pg-b}
migrations: ./migrations
%s
`, strings.ReplaceAll(dsn, "DATABASE", databases[0]), strings.ReplaceAll(dsn, "DATABASE", databases[1]), more),
	}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		path := filepath.Join(c.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run runs a command line somewhere else than beside the config. It fails the test if the password shows, and returns
// what was printed and whether the exit code was 0.
func (c secretConfig) run(t *testing.T, args ...string) (printed string, done bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kiloshard", append([]string{"-c", filepath.Join(c.dir, "kiloshard.yaml")}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "HOME=") })
	cmd.Env = append(append(cmd.Env, "HOME="+c.dir), c.env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if strings.Contains(string(out), sentinel) {
		t.Errorf("kiloshard %s shows the password:\n%s", strings.Join(args, " "), out)
	}
	return string(out), err == nil
}

// TestCredentials runs the toolkit with passwords and certificates from wherever they can come.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := startSecret(t)
	cert, key, err := s.authority.Issue("app_cert")
	if err != nil {
		t.Fatal(err)
	}
	at := func(user, host, query string) string {
		return "postgres://" + user + "@" + host + ":" + s.port + "/DATABASE?" + query
	}
	line := "*:*:*:app:" + sentinel + "\n"
	service := fmt.Sprintf("[photos]\nhost=%s\nport=%s\nuser=app\npassword=%s\nsslmode=disable\n", s.host, s.port, sentinel)
	tls := map[string]string{"tls/ca.pem": string(s.authority.PEM), "tls/app.crt": string(cert), "tls/app.key": string(key)}
	tests := []struct {
		name, dsn, more string
		files           map[string]string
		env             []string
		short           bool // as another, save for where a password or file is: two commands do
	}{
		{name: "DSN", dsn: at("app:"+sentinel, s.host, "sslmode=disable")},
		{name: "variable", short: true, dsn: at("app:${SECRET}", s.host, "sslmode=disable"), env: []string{"SECRET=" + sentinel}},
		{name: "PGPASSWORD", short: true, dsn: at("app", s.host, "sslmode=disable"), env: []string{"PGPASSWORD=" + sentinel}},
		{name: "pgpass at home", short: true, dsn: at("app", s.host, "sslmode=disable"), files: map[string]string{".pgpass": line}},
		{name: "PGPASSFILE", short: true, dsn: at("app", s.host, "sslmode=disable"), files: map[string]string{"else/pgpass": line}, env: []string{"PGPASSFILE=DIR/else/pgpass"}},
		{name: "passfile beside the config", dsn: at("app", s.host, "sslmode=disable&passfile=secrets/pgpass"), files: map[string]string{"secrets/pgpass": line}},
		{name: "service at home", short: true, dsn: "service=photos dbname=DATABASE", files: map[string]string{".pg_service.conf": service}},
		{name: "PGSERVICEFILE", short: true, dsn: "service=photos dbname=DATABASE", files: map[string]string{"services": service}, env: []string{"PGSERVICEFILE=DIR/services"}},
		{name: "service beside the config", dsn: "service=photos dbname=DATABASE servicefile=services", files: map[string]string{"services": service}},
		{name: "verify-full", dsn: at("app:${SECRET}", "localhost", "sslmode=verify-full&sslrootcert=tls/ca.pem"), files: tls, env: []string{"SECRET=" + sentinel}},
		{name: "client certificate", dsn: at("app_cert", "localhost", "sslmode=verify-full&sslrootcert=tls/ca.pem&sslcert=tls/app.crt&sslkey=tls/app.key"), files: tls},
		{
			name: "password command", dsn: at("app", s.host, "sslmode=disable"), files: map[string]string{"token": sentinel + "\n"},
			more: `password_command: [sh, -c, 'cat /proc/[0-9]*/cmdline > ps 2>&-; echo "$KILOSHARD_HOST $PGDATABASE $PGUSER" >> asked; cat token']`,
		},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.more != "" && runtime.GOOS == "windows" {
				t.Skip("needs a shell")
			}
			databases := [2]string{fmt.Sprintf("secret_%d_a", i), fmt.Sprintf("secret_%d_b", i)}
			for _, name := range databases {
				s.exec(t, "create database "+name)
			}
			c := secretDir(t, databases, test.dsn, test.more, test.files, test.env...)
			for i, v := range c.env {
				c.env[i] = strings.ReplaceAll(v, "DIR", c.dir)
			}
			for _, step := range []struct {
				command string
				want    string
			}{
				{"create", "4 shards created"},
				{"migrate up", "4 shards"},
				{"migrate status", "pg-b"},
				{"migrate drift", ""},
				{"verify", ""},
				{"status --timeout 60s -o json", `"up": true`},
				{"id next --shard 3 -o json", "pg-b"},
			} {
				if test.short && step.command != "create" && !strings.HasPrefix(step.command, "id ") {
					continue
				}
				printed, done := c.run(t, strings.Fields(step.command)...)
				if !done || !strings.Contains(printed, step.want) || strings.Contains(printed, "does not answer") {
					t.Errorf("kiloshard %s: expected %q, got\n%s", step.command, step.want, printed)
				}
			}
			if test.more == "" {
				return
			}
			asked, err := os.ReadFile(filepath.Join(c.dir, "asked"))
			if err != nil || strings.Count(string(asked), "\n") < 10 || !strings.Contains(string(asked), "pg-b "+databases[1]+" app\n") {
				t.Errorf("the command was asked %q, %v; expected once for each connection", asked, err)
			}
			list, err := os.ReadFile(filepath.Join(c.dir, "ps"))
			if err != nil || strings.Contains(string(list), sentinel) {
				t.Errorf("the process list: %v, or the password in it", err)
			}
		})
	}
}

// TestCredentialsOfTheStore has the map in a control database, to which the config of this machine has the way alone.
func TestCredentialsOfTheStore(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	s := startSecret(t)
	databases := [2]string{"in_store_a", "in_store_b"}
	for _, name := range append(databases[:], "in_store") {
		s.exec(t, "create database "+name)
	}
	dsn := "postgres://app@localhost:" + s.port + "/DATABASE?sslmode=verify-full&sslrootcert=tls/ca.pem"
	c := secretDir(t, databases, dsn, "", map[string]string{"tls/ca.pem": string(s.authority.PEM), "token": sentinel + "\n"})
	text, err := os.ReadFile(filepath.Join(c.dir, "kiloshard.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"map.yaml": strings.ReplaceAll(string(text), "&sslrootcert=tls/ca.pem", ""), "kiloshard.yaml": fmt.Sprintf("cluster: photos\nstore: {kind: postgres, dsn: %q, local: {sslrootcert: tls/ca.pem}}\n",
		strings.ReplaceAll(dsn, "DATABASE", "in_store")) + `password_command: [sh, -c, 'echo "$KILOSHARD_HOST $PGDATABASE" >> asked; cat token']` + "\n"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ command, want string }{
		{"map import " + filepath.Join(c.dir, "map.yaml"), "version 1"},
		{"create", "4 shards created"},
		{"map history", "1"},
	} {
		if printed, done := c.run(t, strings.Fields(step.command)...); !done || !strings.Contains(printed, step.want) {
			t.Errorf("kiloshard %s: expected %q, got\n%s", step.command, step.want, printed)
		}
	}
	asked, err := os.ReadFile(filepath.Join(c.dir, "asked"))
	if err != nil || strings.Count(string(asked), "store in_store\n") < 3 || !strings.Contains(string(asked), "pg-b in_store_b\n") {
		t.Errorf("the command was asked %q, %v; expected the store and the hosts", asked, err)
	}
}

// TestPasswordsAreNotShown runs the toolkit against hosts that refuse, are down, talk nonsense or do not exist.
func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	s := startSecret(t)
	const wrong = sentinel + "-wrong"
	states := []struct{ name, address, query, want string }{
		{"refuses", s.host + ":" + s.port, "sslmode=disable", "SQLSTATE 28P01"},
		{"down", "127.0.0.1:1", "sslmode=disable", "127.0.0.1:1"},
		{"garbage", nonsense(t), "sslmode=disable", "pg-a"},
		{"bad DSN", "127.0.0.1:port", "sslmode=disable", "hosts[0].dsn: "},
		{"wrong name", "127.0.0.1:" + s.port, "sslmode=verify-full&sslrootcert=ca.pem", "expected the DSN to name the host as the certificate does"},
	}
	ways := []struct {
		name, user, query, more string
		states                  string // among those above
		env                     []string
	}{
		{name: "DSN", user: "app:" + wrong, states: "refuses, down, garbage, bad DSN, wrong name"},
		{name: "variable", user: "app:${SECRET}", states: "refuses, bad DSN", env: []string{"SECRET=" + wrong}},
		{name: "passfile", user: "app", query: "&passfile=pgpass", states: "refuses, garbage"},
		{name: "password command", user: "app", more: "password_command: [sh, -c, 'cat token >&2; cat token']", states: "refuses, down, wrong name"},
		{name: "password command that fails", user: "app", more: "password_command: [sh, -c, 'cat token; cat token >&2; exit 7']", states: "refuses, bad DSN"},
	}
	for _, state := range states {
		for _, way := range ways {
			if !strings.Contains(way.states, state.name) {
				continue
			}
			t.Run(state.name+", "+way.name, func(t *testing.T) {
				t.Parallel()
				files := map[string]string{"pgpass": "*:*:*:*:" + wrong + "\n", "token": wrong + "\n", "ca.pem": string(s.authority.PEM)}
				c := secretDir(t, [2]string{"one", "two"}, "postgres://"+way.user+"@"+state.address+"/DATABASE?"+state.query+way.query, way.more, files, way.env...)
				want := state.want
				if strings.HasSuffix(way.name, "fails") && state.name != "bad DSN" {
					want = "password_command: sh ended with exit status 7"
				}
				for _, command := range []string{
					"create", "migrate status", "verify -o json", "status --timeout 60s", "status --timeout 60s -o json", "id next --shard 0",
				} {
					printed, done := c.run(t, strings.Fields(command)...)
					if done || !strings.Contains(printed, want) || state.name != "bad DSN" && !strings.Contains(printed, "pg-a") {
						t.Errorf("kiloshard %s: expected %q about pg-a, got\n%s", command, want, printed)
					}
				}
			})
		}
	}
}

// nonsense runs a server that speaks another protocol, and returns its address.
func nonsense(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}
