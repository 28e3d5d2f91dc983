package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

var hostNames = [2]string{"pg-a", "pg-b"}

// killBundle is two servers that may be killed, and on which clusters are made.
type killBundle struct {
	t        *testing.T
	servers  [2]*localpg.Server
	dir      string // of the config and the migrations, which are those of all clusters
	count    int    // of shards
	clusters int
}

// killCluster is a cluster on the two servers, whose shards are created and hold nothing.
type killCluster struct {
	*killBundle
	DSNs [2]string
}

func setupKills(t *testing.T, count int) *killBundle {
	t.Helper()
	cfg := shardtest.ServerConfig()
	if cfg.DSN != "" {
		t.Skip("this test kills its servers: unset KILOSHARD_POSTGRES_DSN and install Postgres or Docker")
	}
	cfg.Settings = map[string]string{"fsync": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "bgwriter_lru_maxpages": "0"}
	b := &killBundle{t: t, dir: t.TempDir(), count: count}
	var wg sync.WaitGroup
	for i := range b.servers {
		wg.Go(func() {
			server, err := localpg.Start(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			b.servers[i] = server
			t.Cleanup(func() {
				if err := server.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	b.write("kiloshard.yaml", fmt.Sprintf(`
cluster: kill
shards: %d
epoch: 2026-01-01T00:00:00Z
hosts:
  - {name: pg-a, dsn: "${PG_A_DSN}"}
  - {name: pg-b, dsn: "${PG_B_DSN}"}
placement:
  - {shards: 0-%d, host: pg-a}
  - {shards: %d-%d, host: pg-b}
migrations: ./migrations
`, count, count/2-1, count/2, count-1))
	for i := range killMigrations {
		name, sql := killFile(i)
		b.write(filepath.Join("migrations", name), sql)
	}
	return b
}

func (b *killBundle) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// cluster makes a cluster by kiloshard create.
func (b *killBundle) cluster() *killCluster {
	b.t.Helper()
	c := &killCluster{killBundle: b}
	b.clusters++
	for i, server := range b.servers {
		dsn, err := server.CreateDatabase(b.t.Context(), fmt.Sprintf("kill_%d", b.clusters))
		if err != nil {
			b.t.Fatal(err)
		}
		c.DSNs[i] = dsn
	}
	c.run("create")
	return c
}

// command is the program, which TestMain has put on the PATH.
func (c *killCluster) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), "kiloshard", append([]string{"-c", filepath.Join(c.dir, "kiloshard.yaml")}, args...)...)
	cmd.Env = append(os.Environ(), "PG_A_DSN="+c.DSNs[0], "PG_B_DSN="+c.DSNs[1])
	return cmd
}

// run runs the program, which is to succeed, and returns its standard output.
func (c *killCluster) run(args ...string) []byte {
	c.t.Helper()
	cmd := c.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("kiloshard %v: %v\n%s%s", args, err, out, stderr.String())
	}
	return out
}

// killResult is what kiloshard migrate up -o json prints, as far as it is looked at.
type killResult struct {
	Done     shards.Set `json:"done"`
	UpToDate shards.Set `json:"up_to_date"`
	Steps    []struct {
		From   int        `json:"from"`
		To     int        `json:"to"`
		Shards shards.Set `json:"shards"`
	} `json:"steps"`
}

// up runs kiloshard migrate up, which is to bring all shards to the newest version.
func (c *killCluster) up() killResult {
	c.t.Helper()
	var result killResult
	out := c.run("-o", "json", "migrate", "up")
	if err := json.Unmarshal(out, &result); err != nil {
		c.t.Fatalf("%v in %s", err, out)
	}
	if got := result.Done.Len() + result.UpToDate.Len(); got != c.count {
		c.t.Errorf("kiloshard migrate up: %d of %d shards done or up to date", got, c.count)
	}
	return result
}

// onHosts calls a function with a connection to each host in turn, and the shards that live there.
func (c *killCluster) onHosts(f func(conn *pgx.Conn, name string, first, last int)) {
	c.t.Helper()
	for i, dsn := range c.DSNs {
		conn, err := pgx.Connect(c.t.Context(), dsn)
		if err != nil {
			c.t.Fatal(err)
		}
		f(conn, hostNames[i], i*c.count/2, (i+1)*c.count/2-1)
		if err := conn.Close(c.t.Context()); err != nil {
			c.t.Error(err)
		}
	}
}

// awaitSessions returns when the hosts have ended the sessions of a program that is dead.
func (c *killCluster) awaitSessions() {
	c.t.Helper()
	c.onHosts(func(conn *pgx.Conn, name string, _, _ int) {
		for deadline := time.Now().Add(5 * time.Minute); ; {
			var left int
			const query = `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
			if err := conn.QueryRow(c.t.Context(), query).Scan(&left); err != nil {
				c.t.Fatal(err)
			}
			if left == 0 {
				return
			}
			if time.Now().After(deadline) {
				c.t.Fatalf("%s: %d sessions of a dead program are left", name, left)
			}
		}
	})
}
