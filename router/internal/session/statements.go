package session

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// namePrefix begins the names of all prepared statements of the router.
const namePrefix = "kiloshard_"

// statementKey is what a prepared statement is known by. The same SQL under another path is another statement: its
// tables, and with them the types of its arguments and results, are others.
type statementKey struct{ path, sql string }

// name returns the statement's name on the server. It is made of path and SQL so that, should a pooler hand one
// session's name to another, the name can never stand for anything else.
func (k statementKey) name() string {
	sum := sha256.Sum256([]byte(k.path + "\x00" + k.sql))
	return namePrefix + hex.EncodeToString(sum[:16])
}

// statements are the prepared statements of one connection. The least recently used is thrown out first.
type statements struct {
	kept     *simplelru.LRU[statementKey, *keptStatement]
	own      *simplelru.LRU[statementKey, *keptStatement] // the router's own: see [Session.ownFor]
	unwanted []string                                     // names still to be closed on the server
}

type keptStatement struct {
	desc *pgconn.StatementDescription
	text *texts.Text

	formats []int16                   // of its results as pgx chooses them, once they are known
	fields  []pgconn.FieldDescription // of its results in these formats, once they are known
}

// newStatements returns room for so many statements, at least one. A name that is thrown out is closed on the server with the
// next prepare, not before: all statements of one batch can be used whatever the limit.
func newStatements(limit int) *statements {
	s := &statements{}
	drop := func(_ statementKey, kept *keptStatement) {
		if kept.desc.Name != "" { // else it was only described
			s.unwanted = append(s.unwanted, kept.desc.Name)
		}
	}
	s.kept, _ = simplelru.NewLRU(max(1, limit), drop)
	s.own, _ = simplelru.NewLRU(max(1, limit), drop)
	return s
}

// of returns where a statement is kept.
func (s *statements) of(key statementKey) *simplelru.LRU[statementKey, *keptStatement] {
	if key.own() {
		return s.own
	}
	return s.kept
}

// own reports whether a statement is one of the router's own.
func (k statementKey) own() bool { return slices.Contains(ownUnderPaths, k.sql) }

// get returns a statement, or nil.
func (s *statements) get(key statementKey) *keptStatement {
	kept, _ := s.of(key).Get(key)
	return kept
}

// put keeps a statement that is not there yet.
func (s *statements) put(key statementKey, desc *pgconn.StatementDescription, text *texts.Text) {
	s.of(key).Add(key, &keptStatement{desc: desc, text: text})
}

// drop forgets a statement.
func (s *statements) drop(key statementKey) { s.of(key).Remove(key) }

// dropAll forgets all statements.
func (s *statements) dropAll() {
	s.kept.Purge()
	s.own.Purge()
}
