package localetcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/internal/port"
)

// Config says how [Start] runs a server.
type Config struct {
	Command []string // must call Serve and do nothing else
	Env     []string // added to this process's environment

	Dir string // for the server's files. Defaults to a new one, which Stop removes

	// TokenTTL is how long a client with a user and a password stays authenticated, in whole seconds. Defaults to 5
	// minutes.
	TokenTTL time.Duration

	// PEM files. With Cert and Key, clients connect with TLS; with CA, they need a certificate that it signed.
	CA, Cert, Key string
}

// Server is one etcd server. It is safe for concurrent use.
type Server struct {
	cfg     Config
	dir     string
	order   order
	ports   [2]*port.Port // for clients and for other members
	version string

	mu      sync.Mutex // held for the length of every method; guards what follows
	process *process   // nil while the server does not run
	stopped bool
}

// process is a running server.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when it has been waited for
	hangs  bool          // by Pause
}

// ErrStopped is returned by the methods of a Server after Stop.
var ErrStopped = errors.New("the server was stopped")

// stopLimit limits how long a server may take to shut down before it is killed.
const stopLimit = 10 * time.Second

// Start starts a server and returns when it answers. ctx governs only the start. After an error no process and no files are left.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := newServer(cfg, "local")
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("start etcd: %w", errors.Join(err, s.remove()))
	}
	return s, nil
}

// newServer creates a server's directory and finds addresses for it.
func newServer(cfg Config, name string) (*Server, error) {
	if len(cfg.Command) == 0 {
		return nil, errors.New("Config.Command is empty: expected a command that calls localetcd.Serve")
	}
	s := &Server{cfg: cfg, dir: cfg.Dir}
	for i := range s.ports {
		var err error
		if s.ports[i], err = port.Take(); err != nil {
			s.release()
			return nil, err
		}
	}
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "kiloshard-etcd-")
		if err != nil {
			s.release()
			return nil, err
		}
		s.dir = dir
	}
	scheme := "http"
	if cfg.Cert != "" {
		scheme = "https"
	}
	s.order = order{
		Name: name, Dir: filepath.Join(s.dir, "etcd-"+name), Client: scheme + "://" + s.ports[0].Address(), Peer: "http://" + s.ports[1].Address(),
		TokenTTL: uint(cfg.TokenTTL / time.Second), CA: cfg.CA, Cert: cfg.Cert, Key: cfg.Key,
	}
	s.order.Cluster = name + "=" + s.order.Peer
	return s, nil
}

// Endpoint returns the URL for clients. It stays the same over Kill and Restart.
func (s *Server) Endpoint() string { return s.order.Client }

// Version returns the server's version as in "3.7.3".
func (s *Server) Version() string { return s.version }

// Describe returns one line for messages, as in "etcd 3.7.3, port 20123".
func (s *Server) Describe() string {
	return "etcd " + s.version + ", port " + s.Endpoint()[strings.LastIndexByte(s.Endpoint(), ':')+1:]
}

// PID returns the server's process ID, 0 while it does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// Kill sends SIGKILL to the server and returns when it has exited. Restart starts it again.
func (s *Server) Kill(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	if s.process != nil {
		_ = s.process.cmd.Process.Kill() // fails if it has exited by itself
		<-s.process.exited
		_ = s.process.stdin.Close()
		s.process = nil
	}
	return nil
}

// Restart starts the server again with the same ports and data, after shutting it down if it runs. It returns when the
// server answers; ctx limits the wait. After an error the server does not run.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	s.shutdown()
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("restart etcd: %w", err)
	}
	return nil
}

// Stop shuts the server down and removes its files. Later calls do nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	s.shutdown()
	return s.remove()
}

func (s *Server) remove() error {
	s.release()
	if s.cfg.Dir != "" {
		return os.RemoveAll(s.order.Dir)
	}
	return os.RemoveAll(s.dir)
}

// run starts the process and waits until the server in it answers.
func (s *Server) run(ctx context.Context) error {
	cmd := exec.Command(s.cfg.Command[0], s.cfg.Command[1:]...) // not CommandContext: it runs on after ctx
	cmd.Env = append(os.Environ(), s.cfg.Env...)
	var complaint tail
	cmd.Stderr = &complaint
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	replies := make(chan answer, 1)
	go func() {
		var a answer
		if err := json.NewDecoder(stdout).Decode(&a); err != nil {
			a.Error = "the process exited without an answer"
		}
		replies <- a
		_, _ = io.Copy(io.Discard, stdout) // Wait must come after the last read
		_ = cmd.Wait()
		close(p.exited)
	}()
	err = json.NewEncoder(stdin).Encode(s.order)
	if err == nil {
		select {
		case a := <-replies:
			if a.Error == "" {
				s.version, s.process = a.Version, p
				return nil
			}
			err = errors.New(a.Error)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	_ = cmd.Process.Kill()
	<-p.exited
	_ = stdin.Close()
	if text := complaint.String(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// shutdown shuts the server down if it runs.
func (s *Server) shutdown() {
	if s.process == nil {
		return
	}
	_ = s.process.stdin.Close()
	if s.process.hangs {
		_ = s.process.cmd.Process.Kill()
	}
	select {
	case <-s.process.exited:
	case <-time.After(stopLimit):
		_ = s.process.cmd.Process.Kill()
		<-s.process.exited
	}
	s.process = nil
}

func (s *Server) release() {
	for _, p := range s.ports {
		p.Release()
	}
}

// tail is a writer that keeps the last 4096 bytes written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	const most = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
