package adopt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/queries"
)

// seenStatements are the statements that the server has seen, for a plan to find keys that change.
type seenStatements struct {
	schema *queries.Schema
	all    []queries.Statement
	hidden int64
	unread string // why there are none; empty if they were read
}

// read reads them in the transaction of the plan.
func (s *seenStatements) read(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) (err error) {
	if s.all, s.hidden, err = queries.ReadStatistics(ctx, tx); errors.Is(err, queries.ErrNoStatistics) {
		s.unread = err.Error()
		return nil
	}
	if err == nil {
		s.schema, err = queries.Read(ctx, tx, plan)
	}
	return err
}

// keyChanges adds those that set a key to the findings of the plan. It returns what was read.
func (s *seenStatements) keyChanges(ctx context.Context, plan *adopt.Plan) (string, error) {
	if s.unread != "" {
		return s.unread, nil
	}
	var updates []queries.Statement
	for _, one := range s.all {
		if lower := strings.ToLower(one.SQL); strings.Contains(lower, "update") || strings.Contains(lower, "conflict") {
			updates = append(updates, one)
		}
	}
	if err := s.schema.Classify(ctx, updates); err != nil {
		return "", err
	}
	queries.Sort(updates)
	var changes []adopt.Finding
	for _, one := range updates {
		if one.ChangesKey {
			changes = append(changes, adopt.Finding{Kind: "key-changes", Text: fmt.Sprintf("%s: %s", cli.Count(int(one.Calls), "call"), sqltext.Shortened(one.SQL))})
		}
	}
	plan.Findings = append(changes, plan.Findings...)
	text := fmt.Sprintf("%s of pg_stat_statements read", cli.Count(len(s.all), "statement"))
	if s.hidden > 0 {
		text += fmt.Sprintf(", and %s of other roles not: grant pg_read_all_stats", cli.Thousands(int(s.hidden)))
	}
	return text, nil
}
