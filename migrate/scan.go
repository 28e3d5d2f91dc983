package migrate

import (
	"slices"
	"strings"
)

// statement is one SQL statement within a text, in bytes [start, end): from its first token to the
// end of its last one, without the semicolon.
type statement struct {
	start, end int
	words      []string // the words it begins with, in capitals, as far as nothing else stands between them
	stdin      bool     // it is a COPY … FROM STDIN
}

// split returns the statements of an SQL text in order, as Postgres counts them: empty ones do not
// count. It returns false when it cannot tell where a statement ends, as in a text with a quote
// that is never closed; what it found up to there is returned nevertheless.
//
// The rules are those of the manual's chapter on lexical structure, with
// standard_conforming_strings on, plus two that psql has too: no statement ends within
// parentheses (CREATE RULE), nor within the BEGIN ATOMIC … END of an SQL function.
func split(sql string) ([]statement, bool) {
	s := scanner{text: sql}
	for s.next() {
	}
	s.finish()
	return s.found, s.sure && s.depth == 0 && s.atomic == 0
}

// maxWords is how many words of a statement's beginning are kept.
const maxWords = 6

// scanner is the state of [split].
type scanner struct {
	text  string
	pos   int
	found []statement
	sure  bool // false until the end of the text is reached outside of quotes and comments

	open    bool      // a statement has begun
	current statement // the one that has begun
	leading bool      // only words have been seen of it
	last    string    // its last token, if that was a word
	dotted  bool      // the token before the next one is a dot
	depth   int       // open parentheses
	atomic  int       // BEGIN ATOMIC and the CASEs within it that await their END
}

// next reads one token. It returns false at the end, and where a token does not end.
func (s *scanner) next() bool {
	if s.pos = skipSpace(s.text, s.pos); s.pos < 0 {
		s.pos = len(s.text)
		return false
	}
	if s.pos == len(s.text) {
		s.sure = true
		return false
	}
	start := s.pos
	switch c := s.text[start]; {
	case c == ';':
		s.pos++
		s.semicolon()
		return true
	case startsWord(c):
		s.pos = wordEnd(s.text, start)
		word := strings.ToUpper(s.text[start:s.pos])
		if word == "E" && s.pos < len(s.text) && s.text[s.pos] == '\'' {
			return s.token(start, escapeStringEnd(s.text, s.pos))
		}
		s.word(start, word)
		return true
	case c == '\'' || c == '"':
		return s.token(start, quotedEnd(s.text, start))
	case c == '$':
		return s.token(start, dollarEnd(s.text, start))
	default:
		s.symbol(c)
		return s.token(start, start+1)
	}
}

// token notes a token that is no word, and ends before end; it does not end if that is negative.
func (s *scanner) token(start, end int) bool {
	s.begin(start)
	s.leading, s.last = false, ""
	s.dotted = s.text[start] == '.'
	if end < 0 {
		s.current.end, s.pos = len(s.text), len(s.text)
		return false
	}
	s.current.end, s.pos = end, end
	return true
}

func (s *scanner) begin(start int) {
	if !s.open {
		s.open, s.leading = true, true
		s.current = statement{start: start}
	}
}

// symbol keeps account of parentheses.
func (s *scanner) symbol(c byte) {
	switch c {
	case '(':
		s.depth++
	case ')':
		s.depth--
	}
}

func (s *scanner) word(start int, word string) {
	s.begin(start)
	if s.leading && len(s.current.words) < maxWords {
		s.current.words = append(s.current.words, word)
	}
	if word == "STDIN" && s.last == "FROM" && s.depth == 0 && s.current.startsWith("COPY") {
		s.current.stdin = true
	}
	if !s.dotted && s.last != "AS" { // else it is a name, whatever it looks like
		s.keyword(word)
	}
	s.last, s.dotted, s.current.end = word, false, s.pos
}

// keyword keeps account of BEGIN ATOMIC … END.
func (s *scanner) keyword(word string) {
	switch {
	case s.atomic == 0:
		if word == "ATOMIC" && s.last == "BEGIN" && s.current.makesRoutine() {
			s.atomic = 1
		}
	case word == "CASE":
		s.atomic++
	case word == "END":
		s.atomic--
	}
}

// semicolon ends the statement, if one has begun and it may end here.
func (s *scanner) semicolon() {
	if s.depth == 0 && s.atomic == 0 {
		s.finish()
	}
	s.last, s.dotted = "", false
}

func (s *scanner) finish() {
	if s.open {
		s.found = append(s.found, s.current)
	}
	s.open, s.last, s.dotted = false, "", false
}

// makesRoutine tells whether the statement is a CREATE FUNCTION or CREATE PROCEDURE.
func (s statement) makesRoutine() bool {
	for _, create := range [][]string{{"CREATE"}, {"CREATE", "OR", "REPLACE"}} {
		for _, kind := range []string{"FUNCTION", "PROCEDURE"} {
			if s.startsWith(append(create, kind)...) {
				return true
			}
		}
	}
	return false
}

// startsWith tells whether the statement begins with the given words.
func (s statement) startsWith(words ...string) bool {
	return len(s.words) >= len(words) && slices.Equal(s.words[:len(words)], words)
}
