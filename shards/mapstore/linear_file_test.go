package mapstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// TestFileIsLinearizable kills the processes that change a file, since a file has no server.
func TestFileIsLinearizable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	processes := make([]*fileProcess, 3)
	for i := range processes {
		processes[i] = startFileProcess(t, path)
	}
	opened := 0
	checkLinearizable(t, func(context.Context) error {
		return processes[rand.IntN(len(processes))].restart()
	}, func(t *testing.T) mapstore.Store {
		opened++
		return processes[opened%len(processes)]
	})
}

// request is a request to a process that has a file open, and reply is its answer.
type request struct {
	ID       int
	Swap     bool
	From     int
	Document string
	Why      string
}

type reply struct {
	ID       int
	Version  int
	Document string
	Why      string
	Error    string // none of those below
	NoMap    bool
	Conflict *mapstore.ConflictError
	Unknown  bool
}

// serveFile answers requests about the file that the environment names, concurrently.
func serveFile(in io.Reader, out io.Writer) error {
	store, err := mapstore.Open(context.Background(), shards.Config{Cluster: cluster}, mapstore.Options{Path: os.Getenv(fileVariable)})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	encoder := json.NewEncoder(out)
	for requests := json.NewDecoder(in); ; {
		var q request
		if err := requests.Decode(&q); err != nil {
			return nil // the test has ended
		}
		go func() {
			r := q.answer(store)
			mu.Lock()
			defer mu.Unlock()
			_ = encoder.Encode(r)
		}()
	}
}

const fileVariable = "MAPSTORE_TEST_FILE"

func (q request) answer(store mapstore.Store) reply {
	r := reply{ID: q.ID}
	var entry mapstore.Entry
	var err error
	if q.Swap {
		var config shards.Config
		if config, err = shards.Parse("the test's", []byte(q.Document), nil); err == nil {
			config.Version = 0
			entry, err = store.Swap(context.Background(), q.From, mapstore.Change{Config: config, Why: q.Why})
		}
	} else {
		entry, err = store.Load(context.Background())
	}
	switch {
	case err == nil:
		document, yamlErr := entry.Map.Config().YAML()
		if yamlErr != nil {
			r.Error = yamlErr.Error()
		}
		r.Version, r.Why, r.Document = entry.Map.Version(), entry.Why, string(document)
	case errors.Is(err, mapstore.ErrNoMap):
		r.NoMap = true
	case errors.Is(err, mapstore.ErrOutcomeUnknown):
		r.Unknown = true
	case !errors.As(err, &r.Conflict):
		r.Error = err.Error()
	}
	return r
}

// fileProcess is a store of a file in a process of its own.
type fileProcess struct {
	mapstore.Store // of the same file in this process, for the history

	path string

	mu      sync.Mutex // guards what follows
	cmd     *exec.Cmd
	in      io.WriteCloser
	sent    int                // requests
	waiting map[int]chan reply // closed when the process dies
	ended   chan struct{}      // closed after the process's last answer
}

func startFileProcess(t *testing.T, path string) *fileProcess {
	t.Helper()
	p := &fileProcess{Store: openFile(t, path), path: path}
	noError(t, p.start())
	t.Cleanup(p.kill)
	return p
}

func (p *fileProcess) start() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=file", fileVariable+"="+p.path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	waiting, ended := map[int]chan reply{}, make(chan struct{})
	p.mu.Lock()
	p.cmd, p.in, p.waiting, p.ended = cmd, in, waiting, ended
	p.mu.Unlock()
	go func() {
		defer close(ended)
		for replies := json.NewDecoder(out); ; {
			var r reply
			err := replies.Decode(&r)
			p.mu.Lock()
			if err != nil { // it was killed
				for id, waits := range waiting {
					close(waits)
					delete(waiting, id)
				}
				p.in = nil
				p.mu.Unlock()
				return
			}
			waiting[r.ID] <- r
			delete(waiting, r.ID)
			p.mu.Unlock()
		}
	}()
	return nil
}

func (p *fileProcess) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait()
}

func (p *fileProcess) restart() error {
	p.kill()
	return p.start()
}

var errDead = errors.New("the process was killed")

// send sends a request. It returns false if the process did not answer.
func (p *fileProcess) send(ctx context.Context, q request) (reply, bool, error) {
	waits := make(chan reply, 1)
	p.mu.Lock()
	if p.in == nil {
		p.mu.Unlock()
		return reply{}, true, errDead
	}
	p.sent++
	q.ID = p.sent
	p.waiting[q.ID] = waits
	text, err := json.Marshal(q)
	if err == nil {
		_, err = p.in.Write(append(text, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return reply{}, false, err
	}
	select {
	case r, ok := <-waits:
		return r, ok, nil
	case <-ctx.Done():
		return reply{}, false, ctx.Err()
	}
}

func (p *fileProcess) Load(ctx context.Context) (mapstore.Entry, error) {
	r, answered, err := p.send(ctx, request{})
	if err != nil || !answered {
		return mapstore.Entry{}, errors.Join(errDead, err)
	}
	return r.entry()
}

func (p *fileProcess) Swap(ctx context.Context, from int, next mapstore.Change) (mapstore.Entry, error) {
	document, err := next.Config.YAML()
	if err != nil {
		return mapstore.Entry{}, err
	}
	r, answered, err := p.send(ctx, request{Swap: true, From: from, Document: string(document), Why: next.Why})
	switch {
	case !answered:
		return mapstore.Entry{}, mapstore.ErrOutcomeUnknown
	case err != nil:
		return mapstore.Entry{}, err
	}
	return r.entry()
}

func (p *fileProcess) Watch(context.Context, int) iter.Seq2[mapstore.Entry, error] {
	panic("bug: this test does not watch")
}

func (r reply) entry() (mapstore.Entry, error) {
	switch {
	case r.NoMap:
		return mapstore.Entry{}, mapstore.ErrNoMap
	case r.Unknown:
		return mapstore.Entry{}, mapstore.ErrOutcomeUnknown
	case r.Conflict != nil:
		return mapstore.Entry{}, r.Conflict
	case r.Error != "":
		return mapstore.Entry{}, errors.New(r.Error)
	}
	config, err := shards.Parse("the answer", []byte(r.Document), nil)
	if err != nil {
		return mapstore.Entry{}, err
	}
	config.Version = r.Version
	m, err := config.Map()
	return mapstore.Entry{Map: m, Why: r.Why}, err
}
