// Command kiloshard shards Postgres by schema: it creates shards, migrates them, routes keys to
// them, makes their IDs and takes them apart. kiloshard help lists what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kiloshard/kiloshard/shards/fanout"
)

func main() {
	ctx, stop := signals()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// signals returns the context of the command. The first Ctrl-C ends it, and what is under way is finished; the second
// cancels that on the servers, and the command says what was done; the third ends the program at once.
func signals() (context.Context, func()) {
	ctx, interrupt := context.WithCancel(context.Background())
	abort, cancel := context.WithCancel(context.Background())
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, act := range []func(){interrupt, func() { cancel(); signal.Stop(received) }} {
			select {
			case <-received:
				act()
			case <-done:
				return
			}
		}
	}()
	return fanout.WithAbort(ctx, abort), func() { close(done); interrupt(); cancel() }
}
