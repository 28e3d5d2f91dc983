package prove_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router"
)

// TestCut has nothing come through the network to both addresses of a host for a while.
func TestCut(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	var addresses []string
	var cut, mend []func()
	for _, s := range []*localpg.Server{p.standby, p.primary} {
		proxy, _ := startProxy(t, s)
		addresses = append(addresses, proxy.Listen)
		for _, stream := range []string{"upstream", "downstream"} {
			toxic := fmt.Sprintf(`{"type": "timeout", "name": %[1]q, "stream": %[1]q}`, stream)
			cut = append(cut, func() {
				if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
					t.Error(err)
				}
			})
			mend = append(mend, func() {
				if err := proxy.Toxics.RemoveToxic(t.Context(), stream); err != nil {
					t.Error(err)
				}
			})
		}
	}
	u, err := url.Parse(p.primary.DSN(database))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	u.Host = strings.Join(addresses, ",")
	r := open(t, router.Config{Failover: router.Failover{FailAfter: failSoon, NoWait: true}}, u.String())
	eventually(t, "the primary is found", func() bool { return read(t.Context(), shard(t, r, 1)) == nil })
	isCut(t, r, "", func() {
		for _, fn := range cut {
			fn()
		}
	}, func() {
		for _, fn := range mend {
			fn()
		}
	})
	if got := stats(r, 0); got.Primary != addresses[1] || got.RoleChanges != 0 {
		t.Errorf("got %+v", got)
	}
}

// isCut cuts the first host off, and mends it. other is the name of a host whose calls go on, or empty.
func isCut(t *testing.T, r *router.Router, other string, cut, mend func()) {
	t.Helper()
	s := shard(t, r, 1)
	if err := write(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	cut()
	began := time.Now()
	errs := make(chan error, 12)
	for i := range cap(errs) {
		go func() {
			if i%2 == 0 {
				errs <- read(context.Background(), s)
			} else {
				errs <- write(context.Background(), s, int64(100+i))
			}
		}()
	}
	for range cap(errs) {
		if err := <-errs; err == nil || !errors.Is(err, router.ErrLost) && !router.SafeToRetry(err) {
			t.Errorf("a call that nothing came back to: %v", err)
		}
	}
	t.Logf("all calls had failed after %v", time.Since(began))
	isDown(t, r, 0)
	began = time.Now()
	for i := range int64(100) {
		if err := write(t.Context(), s, 200+i); !errors.Is(err, router.ErrHostDown) {
			t.Errorf("a host that is cut off: %v", err)
		}
		if other != "" {
			if err := read(t.Context(), shard(t, r, shardCount+1)); err != nil {
				t.Errorf("host %s: %v", other, err)
			}
		}
	}
	t.Logf("100 calls failed in %v", time.Since(began))
	mend()
	began = time.Now()
	if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, 2) }); err != nil {
		t.Error(err)
	}
	t.Logf("served again after %v", time.Since(began))
}

// TestNetworkDisconnected takes the network from a container, and gives it back.
func TestNetworkDisconnected(t *testing.T) {
	t.Parallel()
	image := os.Getenv("KILOSHARD_POSTGRES_IMAGE")
	if image == "" {
		image = "postgres:17"
	}
	pgtest.NeedDocker(t, image)
	other := start(t)
	name := "kiloshard-prove-" + strings.ToLower(rand.Text()[:12])
	pgtest.Docker(t, "network", "create", name)
	pgtest.DockerAtEnd(t, "network", "rm", name)
	secret := rand.Text()
	pgtest.Docker(t, "run", "--detach", "--name", name, "--network", name, "--tmpfs", "/var/lib/postgresql",
		"--env", "POSTGRES_PASSWORD="+secret, "--env", "POSTGRES_DB="+database, image, "-c", "fsync=off")
	pgtest.DockerAtEnd(t, "rm", "--force", "--volumes", name)
	ip := pgtest.Docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name)
	dsn := fmt.Sprintf("postgres://postgres:%s@%s/%s?sslmode=disable", secret, net.JoinHostPort(ip, "5432"), database)
	eventually(t, "the container's server answers", func() bool {
		// The image's server starts twice: the first one, which has no network, makes the database.
		return exec.Command("docker", "exec", name, "pg_isready", "--host", ip).Run() == nil
	})
	do(t, dsn, tables())
	r := open(t, router.Config{Failover: router.Failover{FailAfter: 2 * failSoon}}, dsn, other.DSN(database))
	if err := read(t.Context(), shard(t, r, shardCount+1)); err != nil {
		t.Fatal(err)
	}
	isCut(t, r, "pg-b", func() { pgtest.Docker(t, "network", "disconnect", name, name) }, func() {
		pgtest.Docker(t, "network", "connect", name, name)
	})
}
