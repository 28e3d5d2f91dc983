package adopt

import (
	"fmt"
	"strings"
)

// Class is what a table becomes.
type Class string

// The classes of tables.
const (
	Keyed     Class = "keyed"     // each row is in the shard of the key in a column
	Chained   Class = "chained"   // each row is in the shard of the row that a foreign key leads to
	Reference Class = "reference" // without a key: rows of shards refer to it
	Left      Class = "left"      // it stays in the old database
	Undecided Class = "undecided" // a person has to say
)

var classes = []Class{Keyed, Chained, Reference, Left, Undecided}

// Sharded reports whether rows of such a table go to shards.
func (c Class) Sharded() bool { return c == Keyed || c == Chained }

const expectedClass = "keyed, chained, reference, left or undecided"

func readClass(text string, _ bool) (Class, error) {
	for _, c := range classes {
		if string(c) == text {
			return c, nil
		}
	}
	return "", fmt.Errorf("%q; expected %s", text, expectedClass)
}

// Strategy says how the shard of a key is computed, as in kiloshard.yaml. Only those with an expression in SQL can be used.
type Strategy struct {
	By   string `json:"by" yaml:"by"`                         // modulo, or hash
	Hash string `json:"hash,omitempty" yaml:"hash,omitempty"` // hex: the first 8 digits of the MD5 of the key's text
}

const expectedStrategy = "{by: modulo}, for whole numbers, or {by: hash, hash: hex}, for texts and UUIDs: others have no short expression in SQL"

// strategyFor returns the strategy for keys of a type, and false if there is none.
func strategyFor(columnType string) (Strategy, bool) {
	switch columnType {
	case "smallint", "integer", "bigint":
		return Strategy{By: "modulo"}, true
	case "text", "uuid", "character varying":
		return Strategy{By: "hash", Hash: "hex"}, true
	}
	return Strategy{By: "hash", Hash: "hex"}, strings.HasPrefix(columnType, "character varying(")
}

// Shard returns the expression for the shard of a key, of so many shards.
func (s Strategy) Shard(key string, of int) string {
	if s.By == "modulo" { // the sign of % is that of the key
		return fmt.Sprintf("((%s %% %d + %[2]d) %% %[2]d)", key, of)
	}
	return fmt.Sprintf("(('x' || left(md5(%s::text), 8))::bit(32)::bigint %% %d)", key, of)
}
