package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/internal/localetcd"
)

// TestElections kills the leader of three members of an etcd with a password, three times, and runs commands during the election. Then it kills
// two of them: the error names the three, and says what the last one answers.
func TestElections(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	members, err := localetcd.StartCluster(ctx, localetcd.Config{Command: []string{os.Args[0]}, Env: []string{etcdVariable + "=1"}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var endpoints []string
	for _, member := range members {
		endpoints = append(endpoints, member.Endpoint())
		t.Cleanup(func() {
			if err := member.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := (&etcdServer{server: members[0]}).users(ctx); err != nil {
		t.Fatal(err)
	}
	const hosts = "shards: 16\nepoch: 2026-01-01T00:00:00Z\nhosts: [{name: pg-a, dsn: \"postgres://app@127.0.0.1/app\", weight: %d}]\nplacement: [{shards: 0-15, host: pg-a}]\n"
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("kiloshard.yaml", fmt.Sprintf("cluster: photos\nstore: {kind: etcd, endpoints: [%q, %q, %q], user: root, password: root}\n", endpoints[0], endpoints[1], endpoints[2]))
	kiloshard := func(limit string, args ...string) (int, string) {
		var out bytes.Buffer
		code := run(ctx, append([]string{"-c", config, "--store-timeout", limit}, args...), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	done := func(args ...string) {
		t.Helper()
		if code, said := kiloshard("1m", args...); code != cli.ExitDone {
			t.Fatalf("kiloshard %v: exit code %d:\n%s", args, code, said)
		}
	}
	done("map", "import", write("map.yaml", "cluster: photos\n"+fmt.Sprintf(hosts, 1)))
	for round := range 3 {
		led := leaderOf(ctx, t, members)
		if err := led.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		done("route", "12")
		done("map", "edit", "--file", write("next.yaml", "cluster: photos\n"+fmt.Sprintf(hosts, round+2)))
		if err := led.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	left := leaderOf(ctx, t, members)
	for _, member := range members {
		if member != left {
			if err := member.Kill(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	code, said := kiloshard("10s", "route", "12")
	if code != cli.ExitFailed || strings.Count(strings.TrimSpace(said), "\n") != 0 {
		t.Errorf("without a majority: exit code %d, expected 1 and one line:\n%s", code, said)
	}
	for _, member := range members {
		want := member.Endpoint() + " fails: "
		if member == left {
			want = member.Endpoint() + " knows no leader"
		}
		if !strings.Contains(said, want) {
			t.Errorf("expected %q in: %s", want, said)
		}
	}
}

// leaderOf returns the member that leads, of members that all run.
func leaderOf(ctx context.Context, t *testing.T, members []*localetcd.Server) *localetcd.Server {
	t.Helper()
	for ctx.Err() == nil {
		for _, member := range members {
			client, err := clientv3.New(clientv3.Config{
				Endpoints: []string{member.Endpoint()}, Username: "root", Password: "root", Context: ctx, DialTimeout: 20 * time.Second, Logger: zap.NewNop(),
			})
			if err != nil {
				continue // an election is under way
			}
			status, err := client.Status(ctx, member.Endpoint())
			_ = client.Close()
			if err == nil && status.Leader == status.Header.MemberId {
				return member
			}
		}
	}
	t.Fatal("no member leads")
	return nil
}
