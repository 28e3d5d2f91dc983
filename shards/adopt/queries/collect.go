package queries

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/internal/sqltree"
)

// Collector makes statements of the entries of a log, and finds the transactions that touch rows of several keys. It is not safe for
// concurrent use.
type Collector struct {
	schema     *Schema
	statements map[string]*Statement // by normalized text
	normal     map[string]string     // by text as logged; those of prepared statements come often
	open       map[string]*transaction
	found      map[string]*Statement // transactions, by their statements
}

// transaction is one that a session has begun.
type transaction struct {
	keys    map[string]bool // values that its statements have for the key
	texts   []string
	seconds float64
}

// NewCollector returns a collector without entries.
func NewCollector(s *Schema) *Collector {
	return &Collector{schema: s, statements: map[string]*Statement{}, normal: map[string]string{}, open: map[string]*transaction{}, found: map[string]*Statement{}}
}

// maxTexts limits how many texts as logged are remembered.
const maxTexts = 100_000

// maxTransaction limits how many statements of a transaction are remembered.
const maxTransaction = 50

// Add adds an entry.
func (c *Collector) Add(e Entry) error {
	normal, ok := c.normal[e.SQL]
	if !ok {
		var err error
		if normal, err = sqltree.Normalize(e.SQL); err != nil {
			normal = e.SQL
		}
		if len(c.normal) < maxTexts {
			c.normal[e.SQL] = normal
		}
	}
	s := c.statements[normal]
	if s == nil {
		s = &Statement{SQL: masked(normal)}
		s.classify(c.schema, e.SQL) // as logged: equal values are seen to be equal
		c.statements[normal] = s
	}
	s.Calls++
	s.Seconds += e.Seconds
	c.follow(e, normal)
	return nil
}

var (
	begins = regexp.MustCompile(`(?i)^\s*(begin|start\s+transaction)\b`)
	ends   = regexp.MustCompile(`(?i)^\s*(commit|end|rollback|abort)\b`)
	undoes = regexp.MustCompile(`(?i)^\s*rollback\s+(work\s+|transaction\s+)?to\b`)
)

// follow follows the transactions of the entry's session.
func (c *Collector) follow(e Entry, normal string) {
	if e.Session == "" {
		return
	}
	t := c.open[e.Session]
	switch {
	case begins.MatchString(e.SQL):
		c.open[e.Session] = &transaction{keys: map[string]bool{}}
	case t == nil:
	case ends.MatchString(e.SQL) && !undoes.MatchString(e.SQL):
		c.end(t)
		delete(c.open, e.Session)
	default:
		t.seconds += e.Seconds
		if len(t.texts) < maxTransaction {
			t.texts = append(t.texts, sqltext.Shortened(masked(normal)))
		}
		for _, key := range c.schema.keys(e) {
			t.keys[key] = true
		}
	}
}

func (c *Collector) end(t *transaction) {
	if len(t.keys) < 2 {
		return
	}
	text := "begin; " + strings.Join(slices.Compact(t.texts), "; ") + "; commit"
	s := c.found[text]
	if s == nil {
		s = &Statement{Class: CrossShard, SQL: text, Why: fmt.Sprintf("a transaction with %d keys: there are none across shards", len(t.keys))}
		c.found[text] = s
	}
	s.Calls++
	s.Seconds += t.seconds
}

// Statements returns the statements and the transactions of several keys, in no order.
func (c *Collector) Statements() []Statement {
	var all []Statement
	for _, found := range []map[string]*Statement{c.statements, c.found} {
		for _, text := range slices.Sorted(maps.Keys(found)) {
			all = append(all, *found[text])
		}
	}
	return all
}

// keys returns the values that an entry has for keys.
func (s *Schema) keys(e Entry) []string {
	all, err := s.read(e.SQL)
	if err != nil {
		return nil
	}
	var found []string
	for _, a := range all {
		for _, r := range a.rows {
			way := r.plan.Way()
			node, ok := r.columns[way.Column]
			if !ok || !r.plan.Is.Sharded() || len(way.Links) > 0 {
				continue
			}
			value := a.sets.all[a.sets.of(node)].value
			if logged, ok := e.Parameters[value]; ok {
				value = logged
			} else if _, constant, ok := strings.Cut(value, " "); ok {
				value = constant
			} else {
				continue // a parameter that the log does not have
			}
			found = append(found, value)
		}
	}
	return found
}
