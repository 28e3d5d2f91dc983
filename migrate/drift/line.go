package drift

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// The marks that replace the shard's schema and number in the texts, and two braces that are no mark, as in tern's templates.
const (
	schemaMark = "{{.schema}}"
	numberMark = "{{.shard}}"
	braceMark  = `{{"{{"}}`
)

// Render returns a text or key of a [Line] as it is in a shard: with its schema and number in place of the marks.
func Render(text, schema string, n shards.Number) string {
	return strings.NewReplacer(schemaMark, schema, numberMark, strconv.Itoa(int(n)), braceMark, "{{").Replace(text)
}

// hash is the SHA-256 of a line in UTF-8.
type hash [sha256.Size]byte

// Line is an object in a shard's schema, or a property of one.
type Line struct {
	Key  string // what it is, such as "column {{.schema}}.users.name"
	Text string // the statement that makes it; an SQL comment if there is none

	// The object as in pg_depend: its catalog, its OID, and a column's number. Part is negative for a property that is not
	// an object, such as a comment.
	Class, Object uint32
	Part          int32
	Rank          int32 // the usual order of creation

	locking bool // of [lockingParts]
}

// keyRanks are those of keys, of indexes and what they are attached to, of replica identities, and of comments on constraints and indexes.
var keyRanks = []int32{51, 60, 61, 77, 91}

// OfKeys reports whether a line makes a key or an index, or is about one: it can wait until its table has rows, which is faster, unless
// another line needs it.
func (l Line) OfKeys() bool { return slices.Contains(keyRanks, l.Rank) }

// Structure is the content of a shard's schema, without rows.
type Structure []Line

// fingerprint is the hashes of a structure: one of all ordinary lines, and one of each line of [lockingParts].
type fingerprint struct {
	rest    hash
	locking []hash
}

// sum returns the fingerprint.
func (p fingerprint) sum() hash {
	slices.SortFunc(p.locking, func(a, b hash) int { return bytes.Compare(a[:], b[:]) })
	all := sha256.New()
	all.Write(p.rest[:])
	for _, h := range p.locking {
		all.Write(h[:])
	}
	return hash(all.Sum(nil))
}

// sum returns the same fingerprint as a host.
func (s Structure) sum() hash {
	var p fingerprint
	var rest []hash
	for _, l := range s {
		if h := hash(sha256.Sum256([]byte(l.Text))); l.locking {
			p.locking = append(p.locking, h)
		} else {
			rest = append(rest, h)
		}
	}
	slices.SortFunc(rest, func(a, b hash) int { return bytes.Compare(a[:], b[:]) })
	all := sha256.New()
	for _, h := range rest {
		all.Write(h[:])
	}
	p.rest = hash(all.Sum(nil))
	return p.sum()
}

// Numbered returns the structure with {{.shard}} in place of a shard's number.
func (s Structure) Numbered(n shards.Number) Structure {
	digits := strconv.Itoa(int(n))
	numbered := slices.Clone(s)
	for i := range numbered {
		numbered[i].Text = replaceNumber(numbered[i].Text, digits)
		numbered[i].Key = replaceNumber(numbered[i].Key, digits)
	}
	return numbered
}

var digitsPattern = regexp.MustCompile(`[0-9]+`)

func replaceNumber(text, digits string) string {
	if !strings.Contains(text, digits) {
		return text
	}
	return digitsPattern.ReplaceAllStringFunc(text, func(found string) string {
		if found == digits {
			return numberMark
		}
		return found
	})
}

// Of returns the structure with a shard's number in place of {{.shard}}.
func (s Structure) Of(n shards.Number) Structure {
	digits := strconv.Itoa(int(n))
	own := slices.Clone(s)
	for i := range own {
		own[i].Text = strings.ReplaceAll(own[i].Text, numberMark, digits)
		own[i].Key = strings.ReplaceAll(own[i].Key, numberMark, digits)
	}
	return own
}

// Equal reports whether two structures have the same lines, in any order.
func (s Structure) Equal(other Structure) bool { return s.sum() == other.sum() }
