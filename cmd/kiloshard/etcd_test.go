package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/internal/localetcd"
)

// etcdVariable makes a copy of this test binary an etcd.
const etcdVariable = "KILOSHARD_TEST_ETCD"

// serveEtcd ends the process after it was an etcd, where it is to be one.
func serveEtcd() {
	if os.Getenv(etcdVariable) == "" {
		return
	}
	if err := localetcd.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// etcdServer is the etcd of one script. It starts when the script says: etcd start
type etcdServer struct {
	t      *testing.T
	server *localetcd.Server
}

// command runs etcd start, which sets ETCD_ENDPOINT, etcd users, after which it wants root's password, which is root, etcd
// kill, and etcd restart.
func (e *etcdServer) command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: etcd start|users|kill|restart")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	switch args[0] {
	case "start":
		server, err := localetcd.Start(ctx, localetcd.Config{Command: []string{os.Args[0]}, Env: []string{etcdVariable + "=1"}})
		ts.Check(err)
		e.server = server
		e.t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				e.t.Error(err)
			}
		})
		ts.Setenv("ETCD_ENDPOINT", server.Endpoint())
	case "users":
		ts.Check(e.users(ctx))
	case "kill":
		ts.Check(e.server.Kill(ctx))
	case "restart":
		ts.Check(e.server.Restart(ctx))
	default:
		ts.Fatalf("etcd %s: expected start, users, kill or restart", args[0])
	}
}

func (e *etcdServer) users(ctx context.Context) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	_, err = client.UserAdd(ctx, "root", "root")
	if err == nil {
		_, err = client.UserGrantRole(ctx, "root", "root")
	}
	if err == nil {
		_, err = client.AuthEnable(ctx)
	}
	return errors.Join(err, client.Close())
}
