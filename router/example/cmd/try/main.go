// Command try shows the example service at work, on throw-away Postgres servers of this machine: it starts two hosts, one
// of them with a synchronous standby, makes the shards, starts the service, has users use it, and meanwhile changes the
// map, migrates all shards, and kills a host whose standby takes its place. At the end it prints what the users felt, and
// looks at each of their writes.
//
//	go run ./router/example/cmd/try -for 60s
//
// It exits with 1 if a write was lost or is there twice. Nothing is left behind, after Ctrl-C neither.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.DurationVar(&o.length, "for", time.Minute, "how long there is load")
	flag.IntVar(&o.rate, "rate", 200, "requests a second")
	flag.IntVar(&o.users, "users", 300, "users who sign up before")
	flag.Parse()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

var errWrites = errors.New("not all writes are there once")
