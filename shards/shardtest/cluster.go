package shardtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// Epoch is the epoch of the clusters that [New] makes, unless the test says otherwise.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Config describes the cluster of a test.
type Config struct {
	Shards     int                // Defaults to 16
	Hosts      int                // Defaults to 2; the shards are spread evenly over them, in rising order
	Epoch      time.Time          // Defaults to Epoch
	Layout     shards.Layout      // Defaults to shards.DefaultLayout
	Strategy   shards.Strategy    // Defaults to modulo
	Extensions []shards.Extension // of Postgres, that the migrations need. Defaults to none
	Migrations fs.FS              // tern files to run on every shard. Defaults to none
}

// Cluster is a sharded cluster of one test.
type Cluster struct {
	Map *shards.Map
}

// New returns a cluster whose shards exist and are migrated. It is removed when the test ends.
func New(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	cfg = cfg.withDefaults()
	names, err := templates(t, cfg)
	if err != nil {
		t.Fatal("shardtest:", err)
	}
	return &Cluster{Map: newMap(t, cfg, clones(t, names))}
}

// MapConfig returns a config that spreads the given number of shards evenly over the hosts.
func MapConfig(count int, hosts []shards.Host) shards.Config {
	return shards.Config{
		Cluster: "test", Shards: count, Epoch: Epoch, Hosts: hosts, Placement: shards.Evenly(count, hosts),
	}
}

func newMap(t testing.TB, cfg Config, hosts []shards.Host) *shards.Map {
	t.Helper()
	c := MapConfig(cfg.Shards, hosts)
	c.Epoch, c.Layout, c.Strategy, c.Extensions = cfg.Epoch, cfg.Layout, cfg.Strategy, cfg.Extensions
	m, err := c.Map()
	if err != nil {
		t.Fatal("shardtest:", err)
	}
	return m
}

func (cfg Config) withDefaults() Config {
	if cfg.Shards == 0 {
		cfg.Shards = 16
	}
	if cfg.Hosts == 0 {
		cfg.Hosts = 2
	}
	if cfg.Epoch.IsZero() {
		cfg.Epoch = Epoch
	}
	if cfg.Layout == (shards.Layout{}) {
		cfg.Layout = shards.DefaultLayout
	}
	return cfg
}

// template is a set of databases, one a host, that tests are cloned from.
type template struct {
	make  sync.Once
	names []string
	err   error
}

// templates returns the names of the databases to clone for the config. The first call for a config
// creates them.
func templates(t testing.TB, cfg Config) ([]string, error) {
	t.Helper()
	key, err := cfg.key()
	if err != nil {
		return nil, err
	}
	s := server(t)

	shared.mu.Lock()
	if shared.templates == nil {
		shared.templates = map[string]*template{}
	}
	tmpl := shared.templates[key]
	if tmpl == nil {
		tmpl = &template{}
		shared.templates[key] = tmpl
	}
	shared.mu.Unlock()

	tmpl.make.Do(func() {
		hosts := make([]shards.Host, cfg.Hosts)
		for i := range hosts {
			name := newName()
			if tmpl.err = createDatabase(t.Context(), name, ""); tmpl.err != nil {
				return
			}
			tmpl.names = append(tmpl.names, name)
			hosts[i] = shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: s.DSN(name)}
		}
		tmpl.err = prepare(t.Context(), newMap(t, cfg, hosts), cfg.Migrations)
	})
	return tmpl.names, tmpl.err
}

// prepare creates and migrates the templates' shards.
func prepare(ctx context.Context, m *shards.Map, migrations fs.FS) error {
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return err
	}
	if migrations == nil {
		return nil
	}
	_, err := migrate.Up(ctx, migrate.Config{Map: m, Files: migrations})
	return err
}

// key returns a key that differs between configs whose clusters differ.
func (cfg Config) key() (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d %d %v %+v %q\n", cfg.Shards, cfg.Hosts, cfg.Epoch.UnixMilli(), cfg.Layout, cfg.Strategy, cfg.Extensions)
	if cfg.Migrations == nil {
		return string(sum.Sum(nil)), nil
	}
	err := fs.WalkDir(cfg.Migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(cfg.Migrations, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("Config.Migrations%s: %w; expected a directory of migrations, relative to the directory of the test's package", named(cfg.Migrations), err)
	}
	return string(sum.Sum(nil)), err
}

// named returns the directory's name for os.DirFS, whose errors do not contain it.
func named(files fs.FS) string {
	if v := reflect.ValueOf(files); v.Kind() == reflect.String {
		return " " + v.String()
	}
	return ""
}
