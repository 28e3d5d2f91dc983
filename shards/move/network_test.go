package move_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// hostNetwork is a network of containers between them; services and movers reach them by another one.
type hostNetwork struct {
	t          *testing.T
	name       string
	containers map[string]string // IDs by the names of the hosts
}

func (n hostNetwork) plug(host string) {
	pgtest.Docker(n.t, "network", "connect", "--alias", host, n.name, n.containers[host])
}

func (n hostNetwork) unplug(host string) {
	pgtest.Docker(n.t, "network", "disconnect", n.name, n.containers[host])
}

// containers starts hosts with a network between them, on which each has its own name, and two shards on each.
func containers(t *testing.T, names ...string) (*bundle, hostNetwork) {
	t.Helper()
	image := cmp.Or(shardtest.ServerConfig().Image, "postgres:17")
	pgtest.NeedDocker(t, image)
	n := hostNetwork{t: t, name: "kiloshard-hosts-" + strings.ToLower(rand.Text()[:12]), containers: map[string]string{}}
	pgtest.Docker(t, "network", "create", n.name)
	pgtest.DockerAtEnd(t, "network", "rm", n.name)
	var hosts []shards.Host
	for _, name := range names {
		cfg := shardtest.ServerConfig()
		cfg.Source, cfg.Image = localpg.Docker, image
		// A peer that is cut off says nothing.
		cfg.Settings["wal_sender_timeout"], cfg.Settings["wal_receiver_timeout"] = "10s", "10s"
		server, err := localpg.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		dsn, err := server.CreateDatabase(t.Context(), "app")
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal("a server's DSN is no URL")
		}
		n.containers[name] = pgtest.Docker(t, "ps", "--quiet", "--filter", "publish="+u.Port())
		n.plug(name)
		hosts = append(hosts, shards.Host{Name: name, DSN: dsn})
	}
	b := setupOn(t, shardtest.MapConfig(2*len(hosts), hosts))
	b.makeShards()
	return b, n
}

// A host is cut off from the others at the cutover of its shard, while services reach all of them: the cutover is given up, no call
// fails, a shard moves between the two others meanwhile, and once the host is back the move ends.
func TestHostCutOff(t *testing.T) {
	t.Parallel()
	b, network := containers(t, "pg-a", "pg-b", "pg-c")
	b.exec(0, fill)
	c := b.crowd(t, returning, inTx, copied, reading(`select count(*) from events`))
	beside := b.cfg
	beside.Shards, beside.To, beside.Login = shards.SetOf(3), "pg-c", "host=pg-b port=5432"
	b.cfg.Login = "host=pg-a port=5432"
	tell, cut, back := b.cfg.Events, false, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		switch p := point(e); {
		case !cut && p == "cutover: locked":
			cut = true
			network.unplug("pg-a")
		case cut && !back && p == "cutover: tries again":
			back = true
			c.some("calls while the host is cut off")
			if _, err := move.Run(t.Context(), beside); err != nil {
				t.Error(err)
			}
			network.plug("pg-a")
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	if !back {
		t.Error("the cutover went on without the host: the test proves nothing")
	}
	c.some("calls after the move")
	c.end(b, 1)
	b.load()
	b.equal("hosts", b.m.Host(1).Name+" "+b.m.Host(3).Name, "pg-b pg-c")
	b.clean()
}
