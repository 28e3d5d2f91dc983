package localetcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// roleVariable makes this test binary run as an etcd server.
const roleVariable = "LOCALETCD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		goleak.VerifyTestMain(leak.Main{M: m})
	case "server":
		if err := localetcd.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "complains":
		fmt.Fprintln(os.Stderr, "there is no etcd in this program")
		os.Exit(1)
	}
}

func config(role string) localetcd.Config {
	return localetcd.Config{Command: []string{os.Args[0]}, Env: []string{roleVariable + "=" + role}}
}

// A program starts a server as a copy of itself, in a separate process.
func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := localetcd.Start(ctx, config("server"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Stop() }()

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if _, err := client.Put(ctx, "greeting", "hello"); err != nil {
		fmt.Println(err)
		return
	}
	if err := server.Kill(ctx); err != nil { // as kill -9
		fmt.Println(err)
		return
	}
	if err := server.Restart(ctx); err != nil {
		fmt.Println(err)
		return
	}
	response, err := client.Get(ctx, "greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(response.Kvs[0].Value))
	// Output: hello
}

func TestLife(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cfg := config("server")
	cfg.Dir = t.TempDir()
	server, err := localetcd.Start(ctx, cfg)
	noError(t, err)
	first, endpoint := server.PID(), server.Endpoint()
	if first == 0 || !strings.HasPrefix(server.Describe(), "etcd 3.") || !strings.HasPrefix(server.Version(), "3.") {
		t.Errorf("process %d, %s", first, server.Describe())
	}
	noError(t, server.Restart(ctx)) // of one that runs
	if server.PID() == first || server.Endpoint() != endpoint {
		t.Errorf("process %d at %s after %d at %s", server.PID(), server.Endpoint(), first, endpoint)
	}
	noError(t, server.Kill(ctx))
	noError(t, server.Kill(ctx)) // of one that does not run
	if server.PID() != 0 {
		t.Errorf("process %d after a kill", server.PID())
	}
	noError(t, server.Restart(ctx))
	noError(t, server.Stop())
	noError(t, server.Stop())
	for what, err := range map[string]error{"kill": server.Kill(ctx), "restart": server.Restart(ctx), "pause": server.Pause()} {
		if !errors.Is(err, localetcd.ErrStopped) {
			t.Errorf("%s after stop: got %v", what, err)
		}
	}
	left, err := os.ReadDir(cfg.Dir)
	noError(t, err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := localetcd.Start(ctx, localetcd.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Command is empty") {
		t.Errorf("no command: got %v", err)
	}
	if _, err := localetcd.Start(ctx, config("complains")); err == nil || !strings.Contains(err.Error(), "there is no etcd in this program") {
		t.Errorf("a program that complains: got %v", err)
	}
	cfg := config("server")
	cfg.Cert, cfg.Key = "nothing.pem", "nothing.key"
	if _, err := localetcd.Start(ctx, cfg); err == nil || !strings.Contains(err.Error(), "nothing.pem") {
		t.Errorf("no such certificate: got %v", err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := localetcd.Start(ended, config("server")); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
