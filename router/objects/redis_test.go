package objects_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// redisCache keeps each object for a minute.
type redisCache struct{ client *redis.Client }

func redisKey(id shards.ID) string { return fmt.Sprintf("object:%d", id) }

func (c redisCache) Get(ctx context.Context, ids []shards.ID) (map[shards.ID][]byte, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = redisKey(id)
	}
	values, err := c.client.MGet(ctx, keys...).Result()
	found := map[shards.ID][]byte{}
	for i, value := range values {
		if text, ok := value.(string); ok { // nil for a key that is not there
			found[ids[i]] = []byte(text)
		}
	}
	return found, err
}

func (c redisCache) Set(ctx context.Context, entries map[shards.ID][]byte, read time.Time) error {
	left := time.Minute - time.Since(read)
	if left < time.Millisecond {
		return nil
	}
	_, err := c.client.Pipelined(ctx, func(all redis.Pipeliner) error {
		for id, text := range entries {
			all.Set(ctx, redisKey(id), text, left)
		}
		return nil
	})
	return err
}

func (c redisCache) Delete(ctx context.Context, id shards.ID) error {
	return c.client.Del(ctx, redisKey(id)).Err()
}

// A cache in Redis: what is wanted of one is a few lines on any client.
func ExampleCache() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	options := objects.Options[Pin]{Cache: redisCache{client}}
	_ = options // for objects.Open
}

// startRedis starts a server of the test's own, and skips the test where there is none.
func startRedis(ctx context.Context, t *testing.T) (client *redis.Client, stop func()) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no redis-server on the PATH; Debian's package is redis-server")
	}
	dir, err := os.MkdirTemp("", "redis") // of a socket: t.TempDir's names are long
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	server := exec.CommandContext(ctx, path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	client = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1, DialerRetries: 1})
	stop = func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	for client.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			t.Fatal("redis-server does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return client, stop
}

// Objects come out of Redis, change with an update, and come out of the shards once Redis is gone.
func TestCacheInRedis(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	client, stop := startRedis(ctx, t)
	pins := open(t, r, "pin", objects.Options[Pin]{Cache: redisCache{client}})
	plain := open(t, r, "pin", objects.Options[Pin]{})
	var ids []shards.ID
	for i := range 8 {
		pin, err := pins.Create(ctx, Pin{Details: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, pin.ID)
	}
	check := func(when string, first string) {
		t.Helper()
		all, err := pins.GetMany(ctx, ids)
		if err != nil || len(all) != len(ids) {
			t.Fatalf("%s: %d objects, %v", when, len(all), err)
		}
		for i, pin := range all {
			want := fmt.Sprint(i)
			if i == 0 {
				want = first
			}
			if pin.ID != ids[i] || pin.Fields.Details != want {
				t.Errorf("%s: got %v, expected %q at %d", when, pin, want, i)
			}
		}
	}
	check("from the shards", "0")
	if n, err := client.DBSize(ctx).Result(); err != nil || n != int64(len(ids)) {
		t.Errorf("%d entries in Redis, %v, expected %d", n, err, len(ids))
	}
	if left, err := client.PTTL(ctx, redisKey(ids[0])).Result(); err != nil || left <= 0 || left > time.Minute {
		t.Errorf("an entry is kept for %v, %v, expected a minute at most", left, err)
	}
	change := func(text string) func(*Pin) error {
		return func(p *Pin) error { p.Details = text; return nil }
	}
	if _, err := plain.Update(ctx, ids[0], change("unseen")); err != nil {
		t.Fatal(err)
	}
	check("from Redis", "0")
	if _, err := pins.Update(ctx, ids[0], change("seen")); err != nil {
		t.Fatal(err)
	}
	check("after an update", "seen")
	stop()
	check("without Redis", "seen")
}
