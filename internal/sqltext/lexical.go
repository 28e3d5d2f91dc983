package sqltext

import "strings"

// The functions of this file take the position where a part of an SQL text begins, and return where it ends, in bytes.
// Those that return a boolean return false, and the end of the text, for a part that does not end.

// lineEnd returns where the line ends, at its line feed or carriage return.
func lineEnd(text string, pos int) int {
	if i := strings.IndexAny(text[pos:], "\r\n"); i >= 0 {
		return pos + i
	}
	return len(text)
}

// commentEnd is for a comment in /* */, in which other comments may stand.
func commentEnd(text string, pos int) (int, bool) {
	depth := 0
	for pos+1 < len(text) {
		switch text[pos : pos+2] {
		case "/*":
			depth++
			pos += 2
		case "*/":
			depth--
			pos += 2
			if depth == 0 {
				return pos, true
			}
		default:
			pos++
		}
	}
	return len(text), false
}

// bitsEnd is for the string of B'…' or X'…', from its first quote.
func bitsEnd(text string, pos int) (int, bool) {
	for pos++; pos < len(text); pos++ {
		if text[pos] != '\'' {
			continue
		}
		next, ok := continues(text, pos+1)
		if !ok {
			return pos + 1, true
		}
		pos = next
	}
	return len(text), false
}

// stringEnd is for any other string in single quotes, from its first quote. A doubled quote stands for one. With escapes
// a backslash takes the next character with it.
func stringEnd(text string, pos int, escapes bool) (int, bool) {
	for pos++; pos < len(text); pos++ {
		switch {
		case text[pos] == '\\' && escapes:
			pos++
		case text[pos] != '\'':
		case byteAt(text, pos+1) == '\'':
			pos++
		default:
			next, ok := continues(text, pos+1)
			if !ok {
				return pos + 1, true
			}
			pos = next
		}
	}
	return len(text), false
}

// continues returns the position of the quote with which a string goes on, and whether it does: after white space and
// comments with a line feed among them.
func continues(text string, pos int) (int, bool) {
	lines := 0
	for pos < len(text) {
		switch {
		case text[pos] == '\n' || text[pos] == '\r':
			lines++
			pos++
		case isSpace(text[pos]):
			pos++
		case strings.HasPrefix(text[pos:], "--"):
			pos = lineEnd(text, pos)
		default:
			return pos, lines > 0 && text[pos] == '\''
		}
	}
	return pos, false
}

// nameEnd is for a name in double quotes, from its first quote. A doubled quote stands for one.
func nameEnd(text string, pos int) (int, bool) {
	for pos++; pos < len(text); pos++ {
		if text[pos] != '"' {
			continue
		}
		if byteAt(text, pos+1) != '"' {
			return pos + 1, true
		}
		pos++
	}
	return len(text), false
}

// dollarTag returns the $tag$ with which a string in dollar quotes begins, and an empty string if none begins there.
func dollarTag(text string, pos int) string {
	end := pos + 1
	if startsWord(byteAt(text, end)) {
		for end < len(text) && (startsWord(text[end]) || isDigit(text[end])) {
			end++
		}
	}
	if byteAt(text, end) != '$' {
		return ""
	}
	return text[pos : end+1]
}

// dollarEnd is for a string in dollar quotes.
func dollarEnd(text string, pos int, tag string) (int, bool) {
	inside := pos + len(tag)
	if i := strings.Index(text[inside:], tag); i >= 0 {
		return inside + i + len(tag), true
	}
	return len(text), false
}

func wordEnd(text string, pos int) int {
	for pos < len(text) && (startsWord(text[pos]) || isDigit(text[pos]) || text[pos] == '$') {
		pos++
	}
	return pos
}

const decimal = "0123456789"

// digitsEnd is for digits with an underscore here and there.
func digitsEnd(text string, pos int, digits string) int {
	isOne := func(at int) bool { return at < len(text) && strings.IndexByte(digits, text[at]) >= 0 }
	for isOne(pos) || byteAt(text, pos) == '_' && isOne(pos+1) {
		pos++
	}
	return pos
}

// numberEnd is for a number such as 12, 1_000, 1., .5, 1.5e-3 and 0x1F. Letters behind it are a syntax error.
func numberEnd(text string, pos int) int {
	if text[pos] == '0' {
		for _, base := range []struct{ letters, digits string }{{"xX", "0123456789abcdefABCDEF"}, {"oO", "01234567"}, {"bB", "01"}} {
			if c := byteAt(text, pos+1); c != 0 && strings.IndexByte(base.letters, c) >= 0 {
				if end := digitsEnd(text, pos+2, base.digits); end > pos+2 {
					return end
				}
			}
		}
	}
	pos = digitsEnd(text, pos, decimal)
	if byteAt(text, pos) == '.' && byteAt(text, pos+1) != '.' { // 1..2 is of PL/pgSQL
		pos++
		if isDigit(byteAt(text, pos)) {
			pos = digitsEnd(text, pos, decimal)
		}
	}
	if c := byteAt(text, pos); c == 'e' || c == 'E' {
		exponent := pos + 1
		if sign := byteAt(text, exponent); sign == '+' || sign == '-' {
			exponent++
		}
		if isDigit(byteAt(text, exponent)) {
			pos = digitsEnd(text, exponent, decimal)
		}
	}
	return pos
}

// byteAt returns 0 past the end of the text.
func byteAt(text string, pos int) byte {
	if pos >= len(text) {
		return 0
	}
	return text[pos]
}

// isSpace takes \v for white space, as Postgres does since version 16. Before, it is a syntax error.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// startsWord takes each byte that is not ASCII for a letter, as Postgres does.
func startsWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
