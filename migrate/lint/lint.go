package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind is what a statement does that calls for a warning.
type Kind string

// The kinds of warnings.
const (
	Locks    Kind = "locks"    // blocks reads or writes for as long as it goes through data or waits in a queue
	Rewrites Kind = "rewrites" // rewrites the whole table, while nobody can use it
	Breaks   Kind = "breaks"   // services that still use what was there fail
	Fails    Kind = "fails"    // cannot work, or not in every shard
)

// Warning is what one statement does that its author should know.
type Warning struct {
	Rule      string // short and stable, such as "create-index"
	Kind      Kind
	Line      int    // 1-based, in the text
	Statement string // in short, on one line
	Effect    string // what it does: which lock, and what that blocks
	Instead   string // what to do instead
}

// Options is what [Check] should know beside the text.
type Options struct {
	Schema  string                   // the shard's own schema, which the text may name. Defaults to none
	IsShard func(schema string) bool // tells the schemas of shards. Defaults to none
	Outside bool                     // the text is run outside of a transaction, though no line in it says so
}

// Check returns the warnings for a migration's SQL, up or down, rendered, in the order of their
// lines. The error is a [ParseError] for a text that cannot be read, and there are no warnings then:
// the server may still take it, for its version may be newer than the parser's.
//
// It is safe for concurrent use. The first call takes seconds, for it compiles the parser; so does
// one that runs beside others. When a text has brought the parser down, no other is read after it.
func Check(sql string, opts Options) ([]Warning, error) {
	statements, err := parse(sql)
	if err != nil {
		return nil, err
	}
	l := &linter{text: sql, opts: opts, made: map[string]bool{}, notValid: map[string]bool{}, transaction: !opts.Outside && !disablesTx(sql)}
	for _, s := range statements {
		l.now = s
		l.statement(s.node)
		l.anywhere(s.tree)
	}
	slices.SortStableFunc(l.found, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
	return l.found, nil
}

// linter is the state of one [Check].
type linter struct {
	text        string
	opts        Options
	transaction bool // the text runs in a transaction

	now      statement
	made     map[string]bool // relations that the text has created so far, by name
	notValid map[string]bool // constraints that it has added NOT VALID, by table and name
	found    []Warning
}

// warn adds a warning at a location of the text, in bytes; one outside of the statement stands for
// the statement's beginning. The args are for the rule's effect.
func (l *linter) warn(r rule, location int, args ...any) {
	if location < l.now.start || location >= l.now.end {
		location = l.now.start
	}
	effect := r.effect
	if len(args) > 0 {
		effect = fmt.Sprintf(effect, args...)
	}
	l.found = append(l.found, Warning{
		Rule: r.name, Kind: r.kind, Line: lineOf(l.text, location),
		Statement: shortened(l.text[l.now.start:l.now.end]), Effect: effect, Instead: r.instead,
	})
}

// isNew tells whether the text has created the relation.
func (l *linter) isNew(r rangeVar) bool { return l.made[l.key(r.Schema, r.Name)] }

func (l *linter) create(r rangeVar) { l.made[l.key(r.Schema, r.Name)] = true }

// key is a relation's name, with its schema unless that is the shard's own.
func (l *linter) key(schema, name string) string {
	if schema == "" || schema == l.opts.Schema {
		return name
	}
	return schema + "." + name
}

// disablesTx reports whether the text has tern's mark for running outside a transaction.
func disablesTx(sql string) bool {
	for line := range strings.SplitSeq(sql, "\n") {
		if strings.TrimSuffix(line, "\r") == "---- tern: disable-tx ----" {
			return true
		}
	}
	return false
}

// shortened returns a statement on one line, and not all of it if it is long.
func shortened(text string) string {
	const most = 120 // characters
	short := []rune(strings.Join(strings.Fields(text), " "))
	if len(short) > most {
		return string(short[:most-1]) + "…"
	}
	return string(short)
}
