package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// interrupts is what signals do to the program.
type interrupts struct {
	stderr   io.Writer
	deferred chan os.Signal // signals that wait until nothing is held

	mu     sync.Mutex // guards what follows
	held   int        // how many shards no host serves until the program has gone on
	ending bool       // the program ends as soon as nothing is held
	free   *sync.Cond // held is 0
}

// signals returns the context of the command. The first Ctrl-C, SIGTERM or SIGHUP ends it, and what is under way is finished; the second
// Ctrl-C or SIGTERM cancels that on the servers, and the command says what was done; the third ends the program at once. While a shard is
// fenced on its old host and the map does not name the new one yet, only a kill does.
//
// A terminal that is closed sends SIGHUP, and its shell may send another: these count once. A write to a pipe that nobody reads fails,
// and does not end the program. What was started by nohup stays deaf to SIGHUP.
func signals(stderr io.Writer) (context.Context, func()) {
	i := &interrupts{stderr: stderr, deferred: make(chan os.Signal, 1)}
	i.free = sync.NewCond(&i.mu)
	ctx, interrupt := context.WithCancel(context.Background())
	abort, cancel := context.WithCancel(context.Background())
	received := make(chan os.Signal, 8)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(received, syscall.SIGHUP)
	}
	// Not signal.Ignore: the programs that this one starts would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for count := 0; ; {
			select {
			case sig := <-received:
				if sig == syscall.SIGHUP && count > 0 {
					continue
				}
				count++
				i.explain()
				switch count {
				case 1:
					interrupt()
				case 2:
					cancel()
				case 3:
					go i.end()
				}
			case <-done:
				return
			}
		}
	}()
	ctx = moves.WithHold(fanout.WithAbort(ctx, abort), i.hold)
	return ctx, func() { close(done); interrupt(); cancel() }
}

// hold keeps the program alive until release is called.
func (i *interrupts) hold() (release func()) {
	i.mu.Lock()
	for i.ending { // nothing is fenced yet
		i.free.Wait()
	}
	defer i.mu.Unlock()
	i.held++
	if i.held == 1 && len(stopping) > 0 {
		signal.Notify(i.deferred, stopping...)
	}
	return i.release
}

func (i *interrupts) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held--
	if i.held > 0 {
		return
	}
	i.free.Broadcast()
	signal.Stop(i.deferred)
	select {
	case sig := <-i.deferred:
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(sig) // which now does what it always does
		}
	default:
	}
}

// explain says why a signal does not end the program, if a shard is fenced.
func (i *interrupts) explain() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held > 0 {
		go fmt.Fprintln(i.stderr, "interrupted: no host serves a shard that is fenced, so its move goes on until the map names its host")
	}
}

// end ends the program once nothing is held.
func (i *interrupts) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ending = true
	for i.held > 0 {
		i.free.Wait()
	}
	os.Exit(128 + int(syscall.SIGINT))
}
