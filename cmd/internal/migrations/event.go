package migrations

import (
	"encoding/json"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// eventLine is an event of a run, as -o json prints it on standard error.
type eventLine struct {
	Event     migrate.EventKind `json:"event"`
	Run       string            `json:"run"`
	Time      time.Time         `json:"time"`
	Phase     string            `json:"phase,omitempty"`
	Host      string            `json:"host,omitempty"`
	Shard     *shards.Number    `json:"shard,omitempty"`
	From      *int32            `json:"from,omitempty"`
	To        *int32            `json:"to,omitempty"`
	Seconds   float64           `json:"seconds,omitempty"`
	File      string            `json:"file,omitempty"`
	Statement int               `json:"statement,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	Error     string            `json:"error,omitempty"`
	Blockers  string            `json:"blockers,omitempty"`
}

func printEvent(a *cli.App, e migrate.Event) {
	line := eventLine{
		Event: e.Kind, Run: e.Run, Time: e.Time.UTC(), Phase: e.Phase, Host: e.Host,
		Seconds: e.Took.Seconds(), File: e.File, Statement: e.Statement, Attempt: e.Attempt, Blockers: e.Blockers,
	}
	if e.Kind != migrate.PhaseBegan {
		line.Shard = &e.Shard
	}
	if e.Kind == migrate.ShardDone || e.Kind == migrate.ShardFailed {
		line.From, line.To = &e.From, &e.To
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	encoder := json.NewEncoder(a.Stderr)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(line) // errors of standard error are not acted on
}
