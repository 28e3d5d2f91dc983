package session

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"

	"github.com/jackc/pgx/v5/pgconn"
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

// statements are the prepared statements of one connection, the least recently used thrown out first.
type statements struct {
	limit    int
	byKey    map[statementKey]*list.Element
	recent   list.List // of *keptStatement, the most recent first
	unwanted []string  // names still to be closed on the server
}

type keptStatement struct {
	key  statementKey
	desc *pgconn.StatementDescription

	formats []int16                   // of its results as pgx chooses them, once they are known
	fields  []pgconn.FieldDescription // of its results in these formats, once they are known
}

func newStatements(limit int) *statements {
	return &statements{limit: limit, byKey: map[statementKey]*list.Element{}}
}

// get returns the description of a statement, or nil.
func (s *statements) get(key statementKey) *pgconn.StatementDescription {
	if kept := s.kept(key); kept != nil {
		return kept.desc
	}
	return nil
}

// kept returns a statement, or nil.
func (s *statements) kept(key statementKey) *keptStatement {
	element, found := s.byKey[key]
	if !found {
		return nil
	}
	s.recent.MoveToFront(element)
	return element.Value.(*keptStatement)
}

// put keeps a statement that is not there yet. It may throw out others: they stay usable until their names are closed,
// which is not before the next prepare, so that all statements of one batch can be used whatever the limit.
func (s *statements) put(key statementKey, desc *pgconn.StatementDescription) {
	s.byKey[key] = s.recent.PushFront(&keptStatement{key: key, desc: desc})
	for s.recent.Len() > s.limit {
		s.drop(s.recent.Back().Value.(*keptStatement).key)
	}
}

// drop forgets a statement. Its name is closed on the server with the next prepare.
func (s *statements) drop(key statementKey) {
	element, found := s.byKey[key]
	if !found {
		return
	}
	delete(s.byKey, key)
	kept := s.recent.Remove(element).(*keptStatement)
	if kept.desc.Name != "" { // else it was only described
		s.unwanted = append(s.unwanted, kept.desc.Name)
	}
}

// dropAll forgets all statements.
func (s *statements) dropAll() {
	for s.recent.Len() > 0 {
		s.drop(s.recent.Back().Value.(*keptStatement).key)
	}
}
