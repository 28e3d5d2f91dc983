package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main{m}) }

// TestFind has a goroutine that ends after a while, for which goleak alone does not wait, and one that does not end.
func TestFind(t *testing.T) {
	end := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(end) })
	go func() { <-end }()
	if err := Find(); err != nil {
		t.Error(err)
	}

	stays := make(chan struct{})
	defer close(stays)
	go func() { <-stays }()
	if err := find(100 * time.Millisecond); err == nil {
		t.Error("a goroutine that stays was not found")
	}
}

// TestCheck has tests pass, pass and leave a goroutine, and fail.
func TestCheck(t *testing.T) {
	if code := Check(0); code != 0 {
		t.Errorf("code %d, though nothing is left", code)
	}
	stays := make(chan struct{})
	defer close(stays)
	go func() { <-stays }()
	if code := check(100*time.Millisecond, 0); code != 1 {
		t.Errorf("code %d, though a goroutine stays", code)
	}
	if code := check(100*time.Millisecond, 3); code != 3 {
		t.Errorf("code %d, though tests have failed with 3", code)
	}
}

type tests func() int

func (t tests) Run() int { return t() }

// TestMainWaits has tests that leave a goroutine that is about to end, and others that fail.
func TestMainWaits(t *testing.T) {
	ended := make(chan struct{})
	code := Main{tests(func() int {
		go func() {
			time.Sleep(time.Second)
			close(ended)
		}()
		return 0
	})}.Run()
	select {
	case <-ended:
	default:
		t.Error("the goroutine has not ended")
	}
	if code != 0 {
		t.Errorf("code %d", code)
	}
	if code := (Main{tests(func() int { return 3 })}).Run(); code != 3 {
		t.Errorf("code %d, want 3", code)
	}
}
