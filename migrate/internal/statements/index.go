package statements

import (
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// tokens returns the tokens of one statement that the splitter is sure of.
func tokens(sql string) []sqltext.Token { return slices.Collect(sqltext.Tokens(sql)) }

// onIndex is a statement that builds indexes concurrently. If it failed before, it may have left an invalid index.
type onIndex struct {
	kind  string   // "CREATE"; "INDEX", "TABLE" or "SCHEMA" of a REINDEX; empty for any other statement
	index string   // made by CREATE; empty if Postgres chooses the name
	on    []string // the table, index or schema; its own schema first if given
}

// concurrent reports whether a statement builds or drops indexes concurrently.
func concurrent(tokens []sqltext.Token) bool {
	if len(tokens) == 0 || !tokens[0].Is("create") && !tokens[0].Is("drop") && !tokens[0].Is("reindex") {
		return false
	}
	tokens = tokens[:min(len(tokens), 16)]
	return slices.ContainsFunc(tokens, func(t sqltext.Token) bool { return t.Is("concurrently") }) &&
		(tokens[0].Is("reindex") || slices.ContainsFunc(tokens[:min(len(tokens), 3)], func(t sqltext.Token) bool { return t.Is("index") }))
}

// parseOnIndex parses a statement that builds indexes concurrently. It returns false for any other statement, and for
// names that it cannot read, such as U&"…".
func parseOnIndex(all []sqltext.Token) (onIndex, bool) {
	if !concurrent(all) {
		return onIndex{}, false
	}
	p := tokenReader{all}
	var found onIndex
	switch {
	case p.skip("create"):
		p.skip("unique")
		if !p.skip("index") || !p.skip("concurrently") {
			return onIndex{}, false
		}
		found.kind = "CREATE"
		if !p.skip("if", "not", "exists") && p.at("on") {
			found.index = ""
		} else if found.index = p.name(); found.index == "" {
			return onIndex{}, false
		}
		if !p.skip("on") {
			return onIndex{}, false
		}
		p.skip("only")
	case p.skip("reindex"):
		p.parenthesis()
		for _, kind := range []string{"INDEX", "TABLE", "SCHEMA"} {
			if p.skip(strings.ToLower(kind)) {
				found.kind = kind
			}
		}
		p.skip("concurrently")
	}
	found.on = p.names()
	return found, found.kind != "" && len(found.on) > 0
}

// tokenReader reads a statement from its beginning.
type tokenReader struct{ left []sqltext.Token }

func (p *tokenReader) at(word string) bool { return len(p.left) > 0 && p.left[0].Is(word) }

// skip skips words if all of them come next.
func (p *tokenReader) skip(words ...string) bool {
	if len(p.left) < len(words) {
		return false
	}
	for i, word := range words {
		if !p.left[i].Is(word) {
			return false
		}
	}
	p.left = p.left[len(words):]
	return true
}

// name skips a name and returns it.
func (p *tokenReader) name() string {
	if len(p.left) == 0 || p.left[0].Name() == "" {
		return ""
	}
	name := p.left[0].Name()
	p.left = p.left[1:]
	return name
}

// names skips names with dots between them, and returns none if one of them is not a name.
func (p *tokenReader) names() []string {
	names := []string{p.name()}
	for p.skip(".") {
		names = append(names, p.name())
	}
	if slices.Contains(names, "") {
		return nil
	}
	return names
}

// parenthesis skips a pair of parentheses and its content.
func (p *tokenReader) parenthesis() {
	if !p.at("(") {
		return
	}
	for len(p.left) > 0 && !p.skip(")") {
		p.left = p.left[1:]
	}
}
