package session

import (
	"crypto/sha256"
	"encoding/hex"

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
	unwanted []string // names still to be closed on the server
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
	s.kept, _ = simplelru.NewLRU(max(1, limit), func(_ statementKey, kept *keptStatement) {
		if kept.desc.Name != "" { // else it was only described
			s.unwanted = append(s.unwanted, kept.desc.Name)
		}
	})
	return s
}

// get returns a statement, or nil.
func (s *statements) get(key statementKey) *keptStatement {
	kept, _ := s.kept.Get(key)
	return kept
}

// put keeps a statement that is not there yet.
func (s *statements) put(key statementKey, desc *pgconn.StatementDescription, text *texts.Text) {
	s.kept.Add(key, &keptStatement{desc: desc, text: text})
}

// drop forgets a statement.
func (s *statements) drop(key statementKey) { s.kept.Remove(key) }

// dropAll forgets all statements.
func (s *statements) dropAll() { s.kept.Purge() }
