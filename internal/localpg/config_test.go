package localpg_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	settings := func(name, value string) localpg.Config {
		return localpg.Config{Settings: map[string]string{name: value}}
	}
	for _, test := range []struct {
		name string
		cfg  localpg.Config
		want string
	}{
		{"unknown source", localpg.Config{Source: "cloud"}, `source "cloud": want "dsn", "local", "docker", "download" or none`},
		{"no DSN", localpg.Config{Source: localpg.DSN}, `source "dsn": no DSN given`},
		{"not a setting", settings("a b", "1"), `setting "a b": not the name of a server setting`},
		{"ours", settings("Port", "1"), `setting Port: chosen by localpg`},
		{"two lines", settings("work_mem", "1MB\nport=1"), `setting work_mem: the value has more than one line`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := localpg.Start(t.Context(), test.cfg)
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestSettingsAndEnvironment(t *testing.T) {
	t.Parallel()
	odd := `it's a \ "value"`
	server := start(t, localpg.Config{Source: localpg.Local, Settings: map[string]string{
		"WAL_Level": "logical", "max_connections": "17", "cluster_name": "it's me", "kiloshard.odd": odd,
	}, Env: []string{"KILOSHARD_COLOUR=green"}})
	for name, want := range map[string]string{
		"wal_level": "logical", "max_connections": "17", "cluster_name": "it's me", "kiloshard.odd": odd,
		"shared_buffers": "256MB", "fsync": "on", "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
		"server_encoding": "UTF8", "password_encryption": "scram-sha-256",
	} {
		equal(t, name, ask[string](t, server.DSN("postgres"), "select current_setting('"+name+"')"), want)
	}
	equal(t, "collation", ask[string](t, server.DSN("postgres"),
		"select datcollate from pg_database where datname = 'template1'"), "C")
	if environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", server.PID())); err == nil { // on Linux
		variables := slices.Sorted(strings.SplitSeq(strings.TrimRight(string(environment), "\x00"), "\x00"))
		equal(t, "environment", strings.Join(variables, " "), "KILOSHARD_COLOUR=green LC_ALL=C")
	}
}
