package connect_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// A host that lets everybody log in and then says nothing fails a statement, and not only when its context ends.
func TestSilentAfterLogin(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	_, err := connect.OpenPlain(ctx, hostOf("postgres://app@"+pgtest.Silent(t)+"/app?sslmode=disable&connect_timeout=1"), nil)
	if !errors.Is(err, connect.ErrSilent) {
		t.Errorf("got %v, expected that the host is silent", err)
	}
}

// A host that answers others is not silent, however long a statement takes.
func TestLongStatement(t *testing.T) {
	t.Parallel()
	for _, asks := range []int{1, 5} {
		here, there := net.Pipe()
		asked := make(chan struct{}, asks)
		watched := connect.Watch(here, time.Millisecond, func(context.Context) error {
			select {
			case asked <- struct{}{}:
			default:
			}
			return nil
		})
		go func() {
			for range asks {
				<-asked
			}
			_, _ = there.Write([]byte("done"))
		}()
		text := make([]byte, 10)
		if n, err := watched.Read(text); string(text[:n]) != "done" || err != nil {
			t.Errorf("asked %d times: got %q, %v", asks, text[:n], err)
		}
		_, _ = watched.Close(), there.Close()
	}
}

// An answer that comes while another connection waits in vain is an answer, and a host is asked about only while somebody waits.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	asked, read := make(chan struct{}), make(chan struct{})
	watched := connect.Watch(here, time.Millisecond, func(context.Context) error {
		asked <- struct{}{}
		<-read
		return errors.New("not answered")
	})
	go func() {
		<-asked
		_, _ = there.Write([]byte("late"))
	}()
	text := make([]byte, 10)
	n, err := watched.Read(text)
	close(read)
	if string(text[:n]) != "late" || err != nil {
		t.Errorf("got %q, %v", text[:n], err)
	}
	if err := watched.Close(); err != nil {
		t.Error(err)
	}
	_ = there.Close()
}

// Whoever closes a session waits for nobody who asks about its host.
func TestCloseWhileAsking(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	asked := make(chan struct{})
	watched := connect.Watch(here, time.Second, func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	})
	failed := make(chan error)
	go func() {
		_, err := watched.Read(make([]byte, 1))
		failed <- err
	}()
	<-asked
	_ = watched.Close()
	if err := <-failed; err == nil || errors.Is(err, connect.ErrSilent) {
		t.Errorf("got %v, expected that the connection is closed", err)
	}
	_ = there.Close()
}
