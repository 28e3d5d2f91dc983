package mapstore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// swapperVariable makes a copy of this test binary swap the map in the file that it names, instead of running the tests.
const swapperVariable = "MAPSTORE_TEST_SWAP"

// swapForever makes one version after another, and prints each that it made.
func swapForever(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit) // unless the test kills it first
	defer cancel()
	s, err := mapstore.Open(ctx, shards.Config{Cluster: cluster}, mapstore.Options{Path: path, Lookup: environment})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := 0; ; i++ {
		now, err := s.Load(ctx)
		if err != nil {
			return err
		}
		next := newChange(i%100 + 1)
		next.Why = fmt.Sprintf("%d of %d", i, os.Getpid())
		made, err := s.Swap(ctx, now.Map.Version(), next)
		var conflict *mapstore.ConflictError
		switch {
		case err == nil:
			fmt.Println(made.Map.Version(), made.Why)
		case !errors.As(err, &conflict):
			return err
		}
	}
}

// TestFileSwappersKilled has processes swap the map in one file, and kills one after the other.
func TestFileSwappersKilled(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	s := openFile(t, path)
	swap(t, s, 0, 1)
	lines := make(chan string, 1000)
	start := func() (kill func()) {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), swapperVariable+"="+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for scan := bufio.NewScanner(out); scan.Scan(); {
				lines <- scan.Text()
			}
		}()
		return func() {
			_ = cmd.Process.Kill()
			<-done
			_ = cmd.Wait()
			if stderr.Len() > 0 {
				t.Error(stderr.String())
			}
		}
	}
	var printed []string
	collected := make(chan struct{})
	made := make(chan struct{})
	go func() {
		defer close(collected)
		for line := range lines {
			printed = append(printed, line)
			select {
			case made <- struct{}{}:
			default:
			}
		}
	}()
	kills := []func(){start(), start(), start()}
	const rounds = 12
	for round := range rounds {
		for range 5 + round {
			select {
			case <-made:
			case <-time.After(testLimit):
				t.Fatal("no process changes the map any more")
			}
		}
		kills[0]()
		kills = append(kills[1:], start())
	}
	for _, kill := range kills {
		kill()
	}
	close(lines)
	<-collected

	all := versions(t, openFile(t, path))
	history := map[string]bool{}
	for i, e := range all {
		if want := len(all) - i; e.Map.Version() != want {
			t.Fatalf("version %d in the place of %d", e.Map.Version(), want)
		}
		if e.By != "alice" {
			t.Errorf("version %d is by %q", e.Map.Version(), e.By)
		}
		history[fmt.Sprint(e.Map.Version(), " ", e.Why)] = true
	}
	for _, line := range printed {
		if !history[line] {
			t.Errorf("%q was made, and is not in the history", line)
		}
	}
	t.Logf("%d versions by processes of which %d were killed", len(all), rounds)
	now := load(t, s)
	if now.Map.Version() != len(all) {
		t.Errorf("version %d, want %d", now.Map.Version(), len(all))
	}
	swap(t, s, len(all), 1)
}

func TestFileHistoryCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	write(t, path, []byte(commented))
	if err := os.MkdirAll(path+".history/lock", 0o700); err != nil { // not even by root
		t.Fatal(err)
	}
	s := openFile(t, path)
	load(t, s)
	w := watch(t, s, -1)
	if e := w.entry(t); e.Map.Version() != 0 {
		t.Errorf("version %d", e.Map.Version())
	}
	write(t, path, []byte(weighing("2")))
	if err := w.fails(t); !strings.Contains(err.Error(), "version: 1") {
		t.Errorf("error %q does not say what to do", err)
	}
	write(t, path, []byte(strings.Replace(weighing("3"), "shards:", "version: 7\nshards:", 1)))
	if e := w.entry(t); e.Map.Version() != 7 || markOf(e.Map) != 3 {
		t.Errorf("version %d with mark %d", e.Map.Version(), markOf(e.Map))
	}
	if _, err := s.Swap(newContext(t), 7, newChange(4)); err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) {
		t.Errorf("error %v", err)
	}
}

// TestFileLeftByTheKilled starts from the files that a process leaves when it is killed during Swap.
func TestFileLeftByTheKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		leave   func(t *testing.T, path string, first []byte)
		version int
	}{
		{"before the file was replaced", func(t *testing.T, path string, first []byte) {
			rename(t, path+".history/000002.yaml", path+".history/pending")
			write(t, path, first)
		}, 1},
		{"before its record was in place", func(t *testing.T, path string, _ []byte) {
			rename(t, path+".history/000002.yaml", path+".history/pending")
		}, 2},
		{"while the record was written", func(t *testing.T, path string, first []byte) {
			write(t, path+".history/pending", readFile(t, path+".history/000002.yaml")[:60])
			if err := os.Remove(path + ".history/000002.yaml"); err != nil {
				t.Fatal(err)
			}
			write(t, path, first)
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "kiloshard.yaml")
			s := openFile(t, path)
			swap(t, s, 0, 1)
			first := readFile(t, path)
			swap(t, s, 1, 2)
			test.leave(t, path, first)

			s = openFile(t, path)
			checkEntry(t, load(t, s), test.version, test.version)
			w := watch(t, s, 0)
			checkEntry(t, w.entry(t), test.version, test.version)
			swap(t, openFile(t, path), test.version, test.version+1)
			checkEntry(t, w.entry(t), test.version+1, test.version+1)
			all := versions(t, s)
			if len(all) != test.version+1 {
				t.Fatalf("%d versions, want %d", len(all), test.version+1)
			}
			for i, e := range all {
				checkEntry(t, e, test.version+1-i, test.version+1-i)
			}
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
