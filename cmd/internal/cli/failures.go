package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// FailedShard is a shard on which something failed, as JSON has it.
type FailedShard struct {
	Shard  shards.Number `json:"shard"`
	Schema string        `json:"schema"`
	Host   string        `json:"host"`
	Error  string        `json:"error"`

	// Of a migration that the server refused.
	SQLState  string `json:"sqlstate,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"` // 1-based
	Statement string `json:"statement,omitempty"`
}

// Failures returns the failures of a run as JSON has them.
func Failures(partial *shards.PartialError) []FailedShard {
	failed := make([]FailedShard, len(partial.Failed))
	for i, f := range partial.Failed {
		failed[i] = FailedShard{Shard: f.Shard, Schema: f.Schema, Host: f.Host, Error: f.Err.Error()}
		if file := (*migrate.FileError)(nil); errors.As(f, &file) {
			failed[i].File, failed[i].Line, failed[i].Statement = file.File, file.Line, file.Statement
		}
		if pg := (*pgconn.PgError)(nil); errors.As(f, &pg) {
			failed[i].SQLState = pg.Code
		}
	}
	return failed
}

// toldError is a PartialError whose failures have been printed.
type toldError struct{ *shards.PartialError }

// Told returns the error of a run whose failures were printed.
func Told(partial *shards.PartialError) error { return toldError{partial} }

// Error counts, and says what stopped the work.
func (e toldError) Error() string {
	text, separator := "", ""
	if total := e.Done.Len() + len(e.Failed) + e.NotAttempted.Len(); total > 0 || len(e.Causes) == 0 {
		text = fmt.Sprintf("%s of %s shards done, %s", Thousands(e.Done.Len()), Thousands(total), Left(e.PartialError))
		separator = ": "
	}
	var causes []string
	for _, cause := range e.Causes {
		causes = append(causes, said(cause, false))
	}
	for _, cause := range GroupHosts(causes) {
		text += separator + cause
		separator = "; "
	}
	return text
}

// Left counts what a run has not done: "1 failed, 2 interrupted, 1,200 not attempted". It says so of no error too.
func Left(partial *shards.PartialError) string {
	if partial == nil {
		partial = &shards.PartialError{}
	}
	text := Thousands(len(partial.Failed)) + " failed, "
	if n := partial.Interrupted.Len(); n > 0 {
		text += Thousands(n) + " interrupted, "
	}
	return text + Thousands(partial.NotAttempted.Len()-partial.Interrupted.Len()) + " not attempted"
}

func (e toldError) Unwrap() error { return e.PartialError }

// said returns the text of an error, with "interrupted" for the end of a context. Once the command is interrupted, that is also what servers,
// sockets and pgx call otherwise.
func said(err error, isInterrupted bool) string {
	text, end := err.Error(), context.Canceled.Error()
	var refused *pgconn.PgError
	var unconnected *pgconn.ConnectError
	switch {
	case !isInterrupted:
	case errors.As(err, &unconnected) && errors.Is(err, context.Canceled):
		end = unconnected.Error()
	case errors.As(err, &refused) && refused.Code == "57014":
		end = refused.Error()
	}
	before, ends := strings.CutSuffix(text, end)
	if !ends || before != "" && !isInterrupted {
		return text
	}
	return strings.TrimSuffix(strings.TrimSuffix(before, "context already done: "), "timeout: ") + "interrupted"
}

var onHost = regexp.MustCompile(`(?s)^host (\S+): (.*)$`)

// GroupHosts merges texts that differ only in the host they begin with: "hosts pg-a, pg-b: …".
func GroupHosts(all []string) []string {
	hosts := map[string][]string{} // by their error
	for _, text := range all {
		if m := onHost.FindStringSubmatch(text); m != nil {
			hosts[m[2]] = append(hosts[m[2]], m[1])
		}
	}
	var grouped []string
	for _, text := range all {
		m := onHost.FindStringSubmatch(text)
		switch {
		case m == nil || len(hosts[m[2]]) == 1:
			grouped = append(grouped, text)
		case hosts[m[2]][0] == m[1]:
			grouped = append(grouped, "hosts "+strings.Join(hosts[m[2]], ", ")+": "+m[2])
		}
	}
	return grouped
}

// PrintFailures prints a line for each cause: the shards that failed by it.
func (a *App) PrintFailures(m *shards.Map, partial *shards.PartialError) {
	for _, line := range groupFailures(m, partial) {
		rest, _ := strings.CutPrefix(line, "failed:")
		a.complain("failed:", red, rest)
	}
}

// groupFailures returns a line for each cause. Causes that differ only in the name of the shard are one line, that of the first shard.
func groupFailures(m *shards.Map, partial *shards.PartialError) []string {
	byCause := map[string][]*shards.ShardError{}
	var causes []string
	for _, f := range partial.Failed {
		cause := Impersonal(m, f.Schema, f.Err.Error())
		if byCause[cause] == nil {
			causes = append(causes, cause)
		}
		byCause[cause] = append(byCause[cause], f)
	}
	lines := make([]string, len(causes))
	for i, cause := range causes {
		failed := byCause[cause]
		set, text := NumbersOf(failed), failed[0].Err.Error()
		if len(failed) > 1 && text != failed[1].Err.Error() {
			text = fmt.Sprintf("of shard %d: %s", failed[0].Shard, text)
		}
		if len(failed) == 1 {
			lines[i] = "failed: " + failed[0].Error()
			continue
		}
		lines[i] = fmt.Sprintf("failed: %s (%s): %s", Count(set.Len(), "shard"), set.Short(200), text)
	}
	return lines
}

// NumbersOf returns the shards that failed.
func NumbersOf(failed []*shards.ShardError) shards.Set {
	numbers := make([]shards.Number, len(failed))
	for i, f := range failed {
		numbers[i] = f.Shard
	}
	return shards.SetOf(numbers...)
}

// Impersonal returns a text with the name and the number of one shard replaced by a placeholder, so that equal errors of many
// shards compare as equal.
func Impersonal(m *shards.Map, schema, text string) string {
	text = strings.ReplaceAll(text, schema, "{schema}")
	n, ok := m.NumberOf(schema)
	if !ok {
		return text
	}
	return strings.ReplaceAll(text, fmt.Sprintf("(%d,", n), "({shard},") // as its functions call those of the helper schema
}

// MissingHost says in few words why nothing is known of a host, or otherwise for one that does not answer.
func MissingHost(err error, otherwise string) string {
	if identity := (*connect.IdentityError)(nil); errors.As(err, &identity) {
		if identity.Field == "strategy" {
			return "wrong map"
		}
		return "not ours"
	}
	if encoding := (*connect.EncodingError)(nil); errors.As(err, &encoding) {
		return "not UTF8"
	}
	if errors.Is(err, shards.ErrBadDSN) {
		return "bad dsn"
	}
	pg := (*pgconn.PgError)(nil)
	switch {
	case errors.Is(err, connect.ErrCredentials):
		return "no login"
	case errors.Is(err, connect.ErrPooler):
		return "pooler"
	case !errors.As(err, &pg):
		return otherwise
	case pg.Code == "53300":
		return "full" // no connection is left
	case pg.Code == "57P03":
		return "starting" // or stopping
	case strings.HasPrefix(pg.Code, "57"):
		return otherwise // it ended the session
	}
	return "refuses"
}
