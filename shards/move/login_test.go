package move_test

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// pg_stat_statements does not keep the statement with the password. The server need not load it for its setting to be seen.
func TestPasswordStaysOutOfStatistics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(1, `create table public.seen (track text);
		create function public.see() returns event_trigger language plpgsql as $$ begin insert into public.seen values (current_setting('pg_stat_statements.track', true)); end $$;
		create event trigger see on ddl_command_start when tag in ('CREATE SUBSCRIPTION') execute function public.see();
		do $$ begin execute format('alter database %I set pg_stat_statements.track = ''all''', current_database()); end $$`)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("tracked", b.text(1, `select string_agg(distinct track, ', ') from public.seen`), "none")
}

// The target logs in with a passfile of its own, or is refused with an error that names no password.
func TestLogin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	u, err := url.Parse(b.m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	password, _ := u.User.Password()
	b.cfg.LoginWithPassword = false
	b.cfg.Login = "passfile=/nowhere"
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "subscription on pg-b, which logs in to pg-a: ") || strings.Contains(err.Error(), password) {
		t.Errorf("got %v", err)
	}
	b.clean()
	for _, login := range []string{"user=mover password=hunter2", "password = 'hunter2'", "sslkey=/key sslpassword=hunter2"} {
		b.cfg.Login = login
		var field *shards.FieldError
		if _, err := move.Run(t.Context(), b.cfg); !errors.As(err, &field) || !strings.Contains(err.Error(), "passfile=") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", login, err)
		}
	}

	// An error of a login with a password does not show it.
	b.cfg.LoginWithPassword = true
	b.cfg.Login = "port=1"
	if _, err := move.Run(t.Context(), b.cfg); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("got %v", err)
	}
	// Tests beside this one log in with the same password, on databases of their own.
	b.equal("subscriptions that show it", b.text(1, `select count(*) from pg_stat_activity where query like '%`+password+`%' and pid <> pg_backend_pid() and datname = current_database()`), "0")

	if os.Getuid() != 0 || os.Getenv("KILOSHARD_POSTGRES_DSN") != "" || os.Getenv("KILOSHARD_TEST_POSTGRES") == "docker" {
		t.Skip("the server's user cannot be given a file")
	}
	dir, err := os.MkdirTemp("", "kiloshard")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "pass")
	if err := os.WriteFile(file, []byte(u.Hostname()+":*:*:*:"+password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	user := "postgres"
	if exec.Command("chown", user, file).Run() != nil {
		t.Skip("no user " + user)
	}
	b.cfg.LoginWithPassword, b.cfg.Login = false, "passfile="+file
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.served("pg-b", "by a passfile")
	b.clean()
}
