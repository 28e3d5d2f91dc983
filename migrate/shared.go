package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// sharedMark is the first line of a file that runs once on each host.
const sharedMark = "-- kiloshard: once a host"

// shared is the direction of a file that runs once a host, up.
const shared direction = "shared"

// markPattern finds lines that look like marks of ours.
var markPattern = regexp.MustCompile(`(?mi)^[ \t]*-+[ \t]*kiloshard[ \t]*:.*$`)

var (
	errMark           = fmt.Errorf("a mark for kiloshard: expected %q, as the file's first line", sharedMark)
	errSharedNone     = errors.New("it is marked to run once a host, and the config has no schemas for it: expected them in the config, such as \"shared: [app]\"")
	errSharedOutside  = errors.New("it is marked both to run once a host and \"tern: disable-tx\": expected one of the two")
	errSharedTemplate = errors.New("it is marked to run once a host, and has a template: expected none, since the file runs in no shard")
	errSharedDown     = errors.New("it is marked to run once a host, and has a way down: expected none, since other shards may need it; to drop something, write another file")
	errSharedUnsure   = errors.New("it is marked to run once a host, and cannot be split into statements: expected every quote, comment and parenthesis to be closed")
)

// isShared reports whether a file is marked to run once a host.
func isShared(name, body string) (bool, error) {
	marks := markPattern.FindAllStringIndex(body, -1)
	first, _, _ := strings.Cut(body, "\n")
	marked := strings.TrimSuffix(first, "\r") == sharedMark
	if marked {
		marks = marks[1:]
	}
	if len(marks) > 0 {
		return false, &FileError{File: name, Line: 1 + strings.Count(body[:marks[0][0]], "\n"), Err: errMark}
	}
	return marked, nil
}

// checkShared returns a [FileError] for a file that cannot run once a host.
func (d *directory) checkShared(f file, down string) error {
	wrong := func(err error) error { return &FileError{File: f.name, Line: 1, Err: err} }
	switch {
	case len(d.m.SharedSchemas()) == 0:
		return wrong(errSharedNone)
	case f.disableTx:
		return wrong(errSharedOutside)
	case f.rendered:
		return wrong(errSharedTemplate)
	case down != "":
		return wrong(errSharedDown)
	case !f.sure:
		return wrong(errSharedUnsure)
	}
	return f.check()
}

// passShared changes the files that run once a host to what a shard runs of them: on the way up it only checks that its host has
// run the file, and on the way down nothing happens.
func (d *directory) passShared(rendered map[direction][]file) {
	for _, f := range d.shared {
		above, below := &rendered[up][f.number-1], &rendered[down][f.number-1]
		above.sql, below.sql = fmt.Sprintf("select kiloshard.need_shared(%d)", f.number), "select 1"
		above.disableTx, below.disableTx = false, false
	}
}

// sharedUp returns the files up to the target that run once a host.
func (r *run) sharedUp() []file {
	if r.way != up {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.directory.shared), func(f file) bool { return f.number > r.target })
}

// share runs the files that run once a host, in order, on each host that has not run them. These are the hosts of the run's
// shards, and with all shards also the hosts that have none yet. It returns a [shards.HostError] for each host that fails.
func (r *run) share(ctx context.Context) []error {
	files := r.sharedUp()
	if len(files) == 0 {
		return nil
	}
	hosts := make([]shards.Host, 0, len(r.cfg.Map.Hosts()))
	for _, w := range fanout.Plan(r.cfg.Map, r.cfg.Shards) {
		hosts = append(hosts, w.Host)
	}
	for _, host := range r.cfg.Map.Hosts() {
		if r.cfg.Shards.Len() == r.cfg.Map.Len() && len(r.cfg.Map.NumbersOn(host.Name)) == 0 && !host.Closed {
			hosts = append(hosts, host)
		}
	}
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			if err := r.shareOn(ctx, host, files); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// shareAlone is [run.share] when no shard has a file to run.
func (r *run) shareAlone(ctx context.Context) error {
	if causes := r.share(ctx); len(causes) > 0 {
		return &shards.PartialError{Causes: interruptedOr(ctx, causes)}
	}
	return nil
}

// shareOn runs the files that a host has not run.
func (r *run) shareOn(ctx context.Context, host shards.Host, files []file) error {
	s, err := r.sessions.take(ctx, host)
	if err != nil {
		return err
	}
	defer r.sessions.give(s)
	have, err := s.haveShared(ctx)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(slices.Clone(files), func(f file) bool { return slices.Contains(have, f.number) })
	if len(files) == 0 {
		return nil
	}
	if err := s.keepLedger(ctx, r.cfg.Map.Schemas(r.cfg.Map.NumbersOn(host.Name))); err != nil {
		return err
	}
	for _, f := range files {
		if !s.knowsStrings() {
			return &FileError{File: f.name, Err: errEscapes}
		}
		err := r.shareFile(ctx, s, f)
		for attempt := 1; collided(err) && !errors.Is(err, ErrTransactionEnded) && attempt <= r.cfg.Retries && !s.conn.IsClosed(); attempt++ {
			r.triedAgain.Add(1)
			err = r.shareFile(ctx, s, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// haveShared returns the versions of the files that the host has run once a host.
func (s *session) haveShared(ctx context.Context) ([]int32, error) {
	there, err := s.value(ctx, `select to_regprocedure('kiloshard.need_shared(int)') is not null and to_regclass('kiloshard.ledger') is not null`)
	if err != nil || there != "t" {
		return nil, err
	}
	text, err := s.value(ctx, `select coalesce(json_agg(version), '[]') from kiloshard.ledger where direction = 'shared' and current`)
	if err != nil {
		return nil, connect.NameHolders(ctx, s.conn, err)
	}
	var have []int32
	if err := json.Unmarshal([]byte(text), &have); err != nil {
		return nil, fmt.Errorf("its ledger: %w", err)
	}
	return have, nil
}

// shareFile runs a file on a host, in one transaction, unless another run was first.
func (r *run) shareFile(ctx context.Context, s *session, f file) error {
	text := r.sharedScript(f)
	out := s.send(ctx, text.text)
	done, ended := out.applied()
	if out.err != nil || ended || s.conn.TxStatus() != 'I' {
		s.recover(ctx)
	}
	if done == 1 || out.moved() && !ended {
		if done == 1 {
			r.shares.add(f.name, s.host.Name)
		}
		return nil
	}
	err := text.explain(out)
	if left := (*leftError)(nil); errors.As(err, &left) {
		left.shared = r.cfg.Map.SharedSchemas()
	}
	return err
}

// sharedScript returns the script that runs a file on a host. Names without a schema mean the first shared one.
func (r *run) sharedScript(f file) script {
	path := ""
	for _, schema := range r.cfg.Map.SharedSchemas() {
		path += pgx.Identifier{schema}.Sanitize() + ", "
	}
	path += "pg_temp"
	of := shape{run: r.id, who: r.cfg.By, shard: -1}
	p := part{
		file: f,
		prologue: []string{
			"begin isolation level read committed",
			fmt.Sprintf("select kiloshard.begin_shared(%s, %s, '%s', '%s')", of.entry(f).values(), quote(path),
				milliseconds(r.cfg.LockTimeout), milliseconds(r.cfg.StatementTimeout)),
		},
		epilogue: append(r.shape(0, shardVersion{}).resets(),
			"select kiloshard.keep_inside(null, true, "+textArray(r.cfg.Map.SharedSchemas())+")",
			fmt.Sprintf("select kiloshard.end_shared(%d) as %s", f.number, recorded),
			"commit",
		),
	}
	var b strings.Builder
	p.write(&b)
	b.WriteString(neutral)
	return script{text: b.String(), parts: []part{p}}
}

// textArray returns texts as an SQL array.
func textArray(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "array[" + strings.Join(quoted, ", ") + "]"
}

// SharedFile is a file that ran once on each of some hosts.
type SharedFile struct {
	File  string   `json:"file"`
	Hosts []string `json:"hosts"`
}

// shares collects the files that ran once a host. It is safe for concurrent use.
type shares struct {
	mu    sync.Mutex // guards hosts
	hosts map[string][]string
}

func (s *shares) add(file, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil {
		s.hosts = map[string][]string{}
	}
	s.hosts[file] = append(s.hosts[file], host)
}

// inOrder returns the files in the order of the directory.
func (s *shares) inOrder(names []string) []SharedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []SharedFile
	for _, name := range names {
		if hosts := s.hosts[name]; len(hosts) > 0 {
			slices.Sort(hosts)
			all = append(all, SharedFile{File: name, Hosts: hosts})
		}
	}
	return all
}
