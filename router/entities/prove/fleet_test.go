package prove_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/entities"
)

// fleet is the processes of writers and cleaners.
type fleet struct {
	t    *testing.T
	env  []string
	walk int // of cleaners: see processWalk

	mu       sync.Mutex // guards what follows
	all      []*process
	kills    int
	stops    int
	outcomes map[string]int
	examples map[string]int // of errors, without their numbers
	stats    entities.Stats // of all cleaners
}

// process is a writer or cleaner.
type process struct {
	kind  string
	cmd   *exec.Cmd
	stdin io.Closer
	read  chan struct{}  // closed when all its output is read
	stats entities.Stats // as it said last
	said  int            // how often it has said something else than that it failed
}

// works reports whether a process has done something: a writer some calls.
func (p *process) works() bool { return p.said >= 10 || p.said > 0 && p.kind == cleaner }

func (c *cluster) fleet() *fleet {
	f := &fleet{t: c.t, outcomes: map[string]int{}, examples: map[string]int{}}
	c.work = f
	f.env = append(os.Environ(), processStore+"="+c.storeDSN, processDir+"="+c.dir)
	c.t.Cleanup(func() {
		f.kill(writer)
		f.kill(cleaner)
	})
	return f
}

// start starts a process.
func (f *fleet) start(kind string) {
	p := &process{kind: kind, cmd: exec.Command(os.Args[0]), read: make(chan struct{})} //nolint:gosec,noctx // this program; see kill
	p.cmd.Env = append(f.env, processKind+"="+kind, processWalk+"="+strconv.Itoa(f.walk))
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		f.t.Error(err)
		return
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		f.t.Error(err)
		return
	}
	go func() {
		defer close(p.read)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			f.note(p, lines.Text())
		}
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, p)
}

// digits are replaced in errors, so that like ones are counted together.
var digits = strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "")

// note takes a line that a process prints.
func (f *fleet) note(p *process, line string) {
	outcome, text, _ := strings.Cut(line, " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	if outcome != failed {
		p.said++
	}
	switch outcome {
	case counted:
		before := p.stats
		if json.Unmarshal([]byte(text), &p.stats) != nil {
			return // cut off by a kill
		}
		f.stats.Repaired += p.stats.Repaired - before.Repaired
		f.stats.Walked += p.stats.Walked - before.Walked
		f.stats.Checked += p.stats.Checked - before.Checked
		f.stats.Added += p.stats.Added - before.Added
		f.stats.Removed += p.stats.Removed - before.Removed
		f.stats.Taken += p.stats.Taken - before.Taken
		return
	case wrong:
		f.t.Error(text)
	}
	f.outcomes[outcome]++
	if text != "" {
		f.examples[outcome+": "+digits.Replace(text)]++
	}
}

// calls returns how many calls of writers have ended.
func (f *fleet) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcomes[written] + f.outcomes[deleted]
}

// take removes processes of a kind from the fleet, or one of any kind that works, and returns them. On a busy machine a process that
// is killed before it works would leave its work to others that are killed so, too.
func (f *fleet) take(kind string) (taken []*process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind == "" {
		for _, i := range rand.Perm(len(f.all)) {
			if p := f.all[i]; p.works() {
				f.all = slices.Delete(f.all, i, i+1)
				return []*process{p}
			}
		}
		return nil
	}
	f.all = slices.DeleteFunc(f.all, func(p *process) bool {
		if p.kind == kind {
			taken = append(taken, p)
		}
		return p.kind == kind
	})
	return taken
}

// kill kills processes with SIGKILL: those of a kind, or one of any kind, whose kind it returns.
func (f *fleet) kill(kind string) string {
	for _, p := range f.take(kind) {
		_ = p.cmd.Process.Kill()
		<-p.read
		_ = p.cmd.Wait() // it was killed
		f.mu.Lock()
		f.kills++
		f.mu.Unlock()
		kind = p.kind
	}
	return kind
}

// stop lets processes of a kind end well.
func (f *fleet) stop(kind string) {
	for _, p := range f.take(kind) {
		_ = p.stdin.Close()
		<-p.read
		if err := p.cmd.Wait(); err != nil {
			f.t.Errorf("a %s ended: %v", kind, err)
		}
	}
}

// strike kills a process after a while, again and again, and starts another one, until done is closed. Some it stops before, so
// that others do their work, and lets them continue.
func (f *fleet) strike(pause time.Duration, done chan struct{}) {
	for {
		f.mu.Lock()
		var p *process
		if len(f.all) > 0 && rand.IntN(2) == 0 {
			p = f.all[rand.IntN(len(f.all))]
			_ = p.cmd.Process.Signal(syscall.SIGSTOP)
			f.stops++
		}
		f.mu.Unlock()
		ended := false
		select {
		case <-done:
			ended = true
		case <-time.After(pause/2 + rand.N(pause)):
		}
		if p != nil {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
		}
		if ended {
			return
		}
		if kind := f.kill(""); kind != "" {
			f.start(kind)
		}
	}
}

// String says what writers and cleaners did.
func (f *fleet) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf("%d kills, %d processes stopped for a while; writers: %v; cleaners: %+v", f.kills, f.stops, f.outcomes, f.stats)
	for example, n := range f.examples {
		text += fmt.Sprintf("\n%6d %s", n, example)
	}
	return text
}
