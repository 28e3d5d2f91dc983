//go:build unix

package localetcd

import (
	"os"
	"syscall"
)

// Pause makes the server hang, with SIGSTOP, until Resume, Kill or Stop.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP, true) }

// Resume continues a paused server.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT, false) }

func (s *Server) signal(signal os.Signal, hangs bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	if s.process == nil {
		return os.ErrProcessDone
	}
	s.process.hangs = hangs
	return s.process.cmd.Process.Signal(signal)
}
