package migrate

import (
	"slices"
	"strings"
)

// token is a part of a statement: a word, a name or a string with its quotes, or one other character.
type token struct {
	text string
	name string // as Postgres knows it, if it can be a name; else empty
}

// is tells whether the token is a word, given in capitals, without quotes.
func (t token) is(word string) bool { return strings.EqualFold(t.text, word) }

// tokens returns the parts of one statement that [split] is sure of.
func tokens(sql string) []token {
	var found []token
	for pos := skipSpace(sql, 0); pos >= 0 && pos < len(sql); pos = skipSpace(sql, pos) {
		end := pos + 1
		switch c := sql[pos]; {
		case startsWord(c):
			end = wordEnd(sql, pos)
			if word := sql[pos:end]; strings.EqualFold(word, "e") && end < len(sql) && sql[end] == '\'' {
				end = escapeStringEnd(sql, end)
			} else {
				found = append(found, token{text: word, name: lower(word)})
				pos = end
				continue
			}
		case c == '\'' || c == '"':
			end = quotedEnd(sql, pos)
		case c == '$':
			end = dollarEnd(sql, pos)
		}
		if end < 0 {
			return found
		}
		t := token{text: sql[pos:end]}
		if sql[pos] == '"' {
			t.name = strings.ReplaceAll(sql[pos+1:end-1], `""`, `"`)
		}
		found = append(found, t)
		pos = end
	}
	return found
}

// lower returns a word as Postgres has it: it makes only the letters of ASCII small.
func lower(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, word)
}

// onIndex is a statement that builds indexes concurrently, and may have left an invalid one when it failed before.
type onIndex struct {
	kind  string   // "CREATE", or of a REINDEX "INDEX", "TABLE" or "SCHEMA"; empty for any other statement
	index string   // which CREATE makes; empty where Postgres finds a name
	on    []string // the table, index or schema, with its schema before it if it is given
}

// concurrent tells whether a statement builds or drops indexes concurrently.
func concurrent(tokens []token) bool {
	if len(tokens) == 0 || !tokens[0].is("CREATE") && !tokens[0].is("DROP") && !tokens[0].is("REINDEX") {
		return false
	}
	tokens = tokens[:min(len(tokens), 16)]
	return slices.ContainsFunc(tokens, func(t token) bool { return t.is("CONCURRENTLY") }) &&
		(tokens[0].is("REINDEX") || slices.ContainsFunc(tokens[:min(len(tokens), 3)], func(t token) bool { return t.is("INDEX") }))
}

// parseOnIndex returns what a statement does to indexes, and false when it builds none concurrently, or names them in a
// way that is not understood, as with U&"…".
func parseOnIndex(all []token) (onIndex, bool) {
	if !concurrent(all) {
		return onIndex{}, false
	}
	p := tokenReader{all}
	var found onIndex
	switch {
	case p.skip("CREATE"):
		p.skip("UNIQUE")
		if !p.skip("INDEX") || !p.skip("CONCURRENTLY") {
			return onIndex{}, false
		}
		found.kind = "CREATE"
		if !p.skip("IF", "NOT", "EXISTS") && p.at("ON") {
			found.index = ""
		} else if found.index = p.name(); found.index == "" {
			return onIndex{}, false
		}
		if !p.skip("ON") {
			return onIndex{}, false
		}
		p.skip("ONLY")
	case p.skip("REINDEX"):
		p.parenthesis()
		for _, kind := range []string{"INDEX", "TABLE", "SCHEMA"} {
			if p.skip(kind) {
				found.kind = kind
			}
		}
		p.skip("CONCURRENTLY")
	}
	found.on = p.names()
	return found, found.kind != "" && len(found.on) > 0
}

// tokenReader reads a statement from its beginning.
type tokenReader struct{ left []token }

func (p *tokenReader) at(word string) bool { return len(p.left) > 0 && p.left[0].is(word) }

// skip skips words if all of them come next.
func (p *tokenReader) skip(words ...string) bool {
	if len(p.left) < len(words) {
		return false
	}
	for i, word := range words {
		if !p.left[i].is(word) {
			return false
		}
	}
	p.left = p.left[len(words):]
	return true
}

// name skips a name and returns it.
func (p *tokenReader) name() string {
	if len(p.left) == 0 || p.left[0].name == "" {
		return ""
	}
	name := p.left[0].name
	p.left = p.left[1:]
	return name
}

// names skips names with dots between them, and returns none if something is amiss with them.
func (p *tokenReader) names() []string {
	names := []string{p.name()}
	for p.skip(".") {
		names = append(names, p.name())
	}
	if slices.Contains(names, "") || p.at("&") {
		return nil
	}
	return names
}

// parenthesis skips a pair of them and what is in it.
func (p *tokenReader) parenthesis() {
	if !p.at("(") {
		return
	}
	for len(p.left) > 0 && !p.skip(")") {
		p.left = p.left[1:]
	}
}
