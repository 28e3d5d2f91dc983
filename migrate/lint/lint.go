package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltree"
)

// Kind is the kind of a warning.
type Kind string

// The kinds of warnings.
const (
	Locks    Kind = "locks"    // blocks reads or writes while it scans data or waits in a queue
	Rewrites Kind = "rewrites" // rewrites the whole table while nobody can use it
	Breaks   Kind = "breaks"   // services that still use the old schema fail
	Fails    Kind = "fails"    // fails, at least in some shards
	Stays    Kind = "stays"    // keeps its shard from moving to another host
	Differs  Kind = "differs"  // the shards may differ afterwards
)

// Warning is a risk of one statement that its author should know.
type Warning struct {
	Rule      string `json:"rule"` // short and stable, such as "create-index"
	Kind      Kind   `json:"kind"`
	Line      int    `json:"line"`      // 1-based, in the text
	Statement string `json:"statement"` // shortened, on one line
	Effect    string `json:"effect"`    // which lock it takes, and what that blocks
	Instead   string `json:"instead"`   // what to do instead
}

// Options is what [Check] needs to know in addition to the text.
type Options struct {
	Schema     string                   // the shard's own schema, which the text may name. Defaults to none
	Shared     []string                 // schemas that the text may change, since it runs once a host and in no shard. Defaults to none
	Extensions []string                 // extensions that each host has. Defaults to none
	IsShard    func(schema string) bool // reports whether a schema is a shard's. Defaults to none
	Known      *Known                   // what the texts before this one make; Check adds what this one makes. Defaults to none
	Outside    bool                     // the text runs outside a transaction even without a mark
}

// Check returns the warnings for a migration's SQL, up or down, rendered, in the order of their
// lines. The error is a [ParseError] for a text that cannot be parsed; then there are no warnings.
// The server may still accept it, since its version may be newer than the parser's.
//
// It is safe for concurrent use, with different Options.Known. The first call takes seconds, since it compiles the
// parser; so do concurrent calls. After a text that crashes the parser, all other calls fail.
func Check(sql string, opts Options) ([]Warning, error) {
	statements, err := parse(sql)
	if err != nil {
		return nil, err
	}
	l := &linter{text: sql, opts: opts, made: map[string]bool{}, known: opts.Known, notValid: map[string]bool{}, added: map[string]bool{}, transaction: !opts.Outside && !disablesTx(sql)}
	if l.known == nil {
		l.known = &Known{}
	}
	for _, s := range statements {
		l.now = s
		l.statement(s.node)
		l.leaves(s.tree)
		l.anywhere(s.tree)
		l.narrow(s.node)
		l.bareNames(s.tree)
		l.enumValues(s.tree)
		l.byName()
		l.stays(s.tree)
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
	known    *Known
	notValid map[string]bool // constraints that it has added NOT VALID, by table and name
	added    map[string]bool // values that it has added to enums
	found    []Warning
}

// warn adds a warning at a location of the text, in bytes; a location outside the statement means its beginning. The args
// are for the rule's effect.
func (l *linter) warn(r rule, location int, args ...any) {
	if location < l.now.start || location >= l.now.end {
		location = l.now.start
	}
	effect := r.effect
	if len(args) > 0 {
		effect = fmt.Sprintf(effect, args...)
	}
	l.found = append(l.found, Warning{
		Rule: r.name, Kind: r.kind, Line: sqltree.LineOf(l.text, location),
		Statement: shortened(l.text[l.now.start:l.now.end]), Effect: effect, Instead: r.instead,
	})
}

// isNew reports whether the text has created the relation, or one before it that no shard has run.
func (l *linter) isNew(r rangeVar) bool {
	key := l.key(r.Schema, r.Name)
	return l.made[key] || l.known.made[key]
}

// create notes a relation that is new; for the texts after this one only if it is in the shard, and cannot have been there before.
func (l *linter) create(r rangeVar, ifNotExists bool) {
	key := l.key(r.Schema, r.Name)
	l.made[key] = true
	if len(l.opts.Shared) > 0 || ifNotExists && l.known.run {
		return
	}
	if l.known.made == nil {
		l.known.made = map[string]bool{}
	}
	l.known.made[key] = true
}

// key is a relation's name, qualified unless its schema is the shard's own.
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

// shortened returns a statement on one line, cut off if it is long.
func shortened(text string) string {
	const most = 120 // characters
	short := []rune(strings.Join(strings.Fields(text), " "))
	if len(short) > most {
		return string(short[:most-1]) + "…"
	}
	return string(short)
}
