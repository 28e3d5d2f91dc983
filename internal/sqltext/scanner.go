package sqltext

import (
	"iter"
	"strings"
)

// Scanner reads the tokens of an SQL text.
type Scanner struct {
	Text string

	// Escapes is for servers with standard_conforming_strings off: in '…' a backslash takes the next character with it,
	// as it always does in E'…'.
	Escapes bool

	pos int
}

// Tokens yields the tokens of an SQL text, for standard_conforming_strings on.
func Tokens(text string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		s := Scanner{Text: text}
		for t, ok := s.Next(); ok; t, ok = s.Next() {
			if !yield(t) {
				return
			}
		}
	}
}

// SkipSpace returns where the white space and comments end that begin at pos, in bytes. It returns the beginning of a
// comment that does not end.
func SkipSpace(text string, pos int) int {
	for pos < len(text) {
		switch {
		case isSpace(text[pos]):
			pos++
		case strings.HasPrefix(text[pos:], "--"):
			pos = lineEnd(text, pos)
		case strings.HasPrefix(text[pos:], "/*"):
			end, closed := commentEnd(text, pos)
			if !closed {
				return pos
			}
			pos = end
		default:
			return pos
		}
	}
	return pos
}

// Next returns the next token, and false at the end of the text.
func (s *Scanner) Next() (Token, bool) {
	start := SkipSpace(s.Text, s.pos)
	if start == len(s.Text) {
		s.pos = start
		return Token{}, false
	}
	kind, end, closed := s.scan(start)
	s.pos = end
	return Token{Kind: kind, Text: s.Text[start:end], Start: start, Open: !closed}, true
}

// scan returns the kind of the token that begins at start, where it ends, and whether it ends before the text does.
func (s *Scanner) scan(start int) (kind Kind, end int, closed bool) {
	text := s.Text
	c, next := text[start], byteAt(text, start+1)
	switch {
	case c == '\'':
		end, closed = stringEnd(text, start, s.Escapes)
		return String, end, closed
	case c == '"':
		end, closed = nameEnd(text, start)
		return Name, end, closed
	case c == '/' && next == '*': // SkipSpace has passed over all comments that end
		return Comment, len(text), false
	case next == '\'' && strings.IndexByte("bBxX", c) >= 0:
		end, closed = bitsEnd(text, start+1)
		return String, end, closed
	case next == '\'' && (c == 'e' || c == 'E'):
		end, closed = stringEnd(text, start+1, true)
		return String, end, closed
	case (c == 'u' || c == 'U') && next == '&' && byteAt(text, start+2) == '\'':
		end, closed = stringEnd(text, start+2, false)
		return String, end, closed
	case (c == 'u' || c == 'U') && next == '&' && byteAt(text, start+2) == '"':
		end, closed = nameEnd(text, start+2)
		return Name, end, closed
	case startsWord(c):
		return Word, wordEnd(text, start), true
	case c == '.' && next == '.':
		return Symbol, start + 2, true
	case isDigit(c) || c == '.' && isDigit(next):
		return Number, numberEnd(text, start), true
	case c == '$' && isDigit(next):
		return Param, start + 1 + len(text[start+1:]) - len(strings.TrimLeft(text[start+1:], decimal)), true
	case c == '$':
		if tag := dollarTag(text, start); tag != "" {
			end, closed = dollarEnd(text, start, tag)
			return String, end, closed
		}
	}
	return Symbol, start + 1, true
}
