// Command photos is a photo service over HTTP on the shards of a cluster. Package service says what it answers.
//
//	photos -c kiloshard.yaml -listen 127.0.0.1:8080
//
// It writes the address that it listens on to standard output, and its log to standard error. It ends on SIGTERM and
// Ctrl-C, after the requests under way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// grace is how long requests under way have when the service ends. Many who end services kill them after 30 s.
const grace = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "photos:", err)
		os.Exit(1)
	}
}

// files are those that the program works with.
type files struct{ config, mapCopy, traces string }

func run(ctx context.Context) (err error) {
	var f files
	flag.StringVar(&f.config, "c", "kiloshard.yaml", "the config file of the cluster")
	flag.StringVar(&f.mapCopy, "map-copy", "", "a file in which the last map is kept, for a start while the map's store is down")
	flag.StringVar(&f.traces, "traces", "", "a file to write traces to, one span after the other; none if empty")
	drain := flag.Duration("drain", 0, "how long to go on after SIGTERM, until load balancers have noticed that /readyz says 503")
	listen := flag.String("listen", "127.0.0.1:8080", "the address to listen on, with port 0 for a free one")
	flag.Parse()

	p, err := assemble(ctx, f, *drain, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	cleaning, end := context.WithCancel(ctx)
	var cleaner sync.WaitGroup
	cleaner.Go(func() { p.service.Clean(cleaning) })
	defer func() {
		end()
		cleaner.Wait()
	}()
	return p.service.Serve(ctx, listener, p.handler, grace)
}
