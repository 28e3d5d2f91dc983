package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// programs is where the programs are that all tests run.
var programs string

func TestMain(m *testing.M) {
	localpg.IgnoreEnvironment()
	code, err := testAll(m)
	if err = errors.Join(err, leak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// testAll builds the programs once, and runs the tests with a folder for temporary files in which they are to leave
// nothing. The user whom Postgres runs as can enter it.
func testAll(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "kiloshard-try-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs = filepath.Join(dir, "programs")
	temporary := filepath.Join(dir, "tmp")
	if err := errors.Join(
		build(context.Background(), programs), os.Mkdir(temporary, 0o777),
		os.Chmod(dir, 0o755), os.Chmod(temporary, 0o777|os.ModeSticky), os.Setenv("TMPDIR", temporary),
	); err != nil {
		return 1, err
	}
	code = m.Run()
	left, err := os.ReadDir(temporary)
	for _, entry := range left {
		err = errors.Join(err, fmt.Errorf("%s is left behind", entry.Name()))
	}
	return code, err
}

// The map changes, a migration runs, a host is killed, and no write is lost or doubled.
func TestRun(t *testing.T) {
	t.Parallel()
	pgtest.Long(t)
	var out bytes.Buffer
	if err := run(t.Context(), &out, options{length: 20 * time.Second, rate: 50, users: 30, programs: programs}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, part := range []string{
		`64 shards 0→6\n`, `64 shards 6→8\n`, `\nversion 5\b`, ` writes were looked at, one by one: 0 lost, 0 doubled\.\n`,
		`\n +users +\d+ +\d+ +[1-9].*\n *photos +\d+ +\d+ +[1-9].*\n *follows .*\n *likes .*\n *boards_by_request +\d+ +\d+ +[1-9].*\n *entities +\d+ +\d+ +[1-9].*\n *notes_by_user +\d+ +\d+ +[1-9].*\nPhotos .* rows in likes: 0\.\n`,
		`the router went over to another map 4 times and made [1-9]`,
		`kill -9 of pg-b.* \(\d+\.\d to \d+\.\d s\) +[1-9]`, `\nusers on pg-b `, `64 shards on 2 hosts: all as the map says`,
		`\nThe service has ended in good order\. Every acknowledged write is there, once\.\n`,
	} {
		if !regexp.MustCompile(part).MatchString(out.String()) {
			t.Errorf("%q is not in the output:\n%s", part, out.String())
		}
	}
}

// interrupting cancels a context as soon as a text is written.
type interrupting struct {
	bytes.Buffer
	at     string
	cancel context.CancelFunc
}

func (w *interrupting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.at) {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interrupting{at: "Now 1h0m0s of load", cancel: cancel}
	err := run(ctx, out, options{length: time.Hour, rate: 20, users: 5, programs: programs})
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("%v, expected that it was interrupted", err)
	}
	if text := out.String(); strings.Contains(text, "lost") {
		t.Errorf("a report was printed:\n%s", text)
	}
}
