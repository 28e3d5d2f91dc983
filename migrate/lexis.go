package migrate

import "strings"

// The functions of this file find where the parts of an SQL text end. They take the position where
// a part begins and return the one behind it, in bytes; -1 for a part that does not end.

// skipSpace returns where the white space and comments that begin at pos end.
func skipSpace(text string, pos int) int {
	for pos < len(text) {
		switch {
		case isSpace(text[pos]):
			pos++
		case strings.HasPrefix(text[pos:], "--"):
			pos = lineEnd(text, pos)
		case strings.HasPrefix(text[pos:], "/*"):
			if pos = commentEnd(text, pos); pos < 0 {
				return -1
			}
		default:
			return pos
		}
	}
	return pos
}

// lineEnd returns where the line ends, at its line feed or carriage return.
func lineEnd(text string, pos int) int {
	if i := strings.IndexAny(text[pos:], "\r\n"); i >= 0 {
		return pos + i
	}
	return len(text)
}

// commentEnd is for a comment in /* */, within which others may stand.
func commentEnd(text string, pos int) int {
	for depth := 0; pos < len(text); {
		switch {
		case strings.HasPrefix(text[pos:], "/*"):
			depth++
			pos += 2
		case strings.HasPrefix(text[pos:], "*/"):
			depth--
			pos += 2
			if depth == 0 {
				return pos
			}
		default:
			pos++
		}
	}
	return -1
}

// quotedEnd is for what stands in single or double quotes, where a doubled quote stands for one.
func quotedEnd(text string, pos int) int {
	quote := text[pos]
	for pos++; pos < len(text); pos++ {
		if text[pos] != quote {
			continue
		}
		if pos+1 == len(text) || text[pos+1] != quote {
			return pos + 1
		}
		pos++
	}
	return -1
}

// escapeStringEnd is for the string of E'…', from its quote. A backslash takes the next character
// with it, also in the parts that follow on lines of their own.
func escapeStringEnd(text string, pos int) int {
	for pos++; pos < len(text); pos++ {
		switch text[pos] {
		case '\\':
			pos++
		case '\'':
			if pos+1 < len(text) && text[pos+1] == '\'' {
				pos++
				continue
			}
			next, ok := continues(text, pos+1)
			if !ok {
				return pos + 1
			}
			pos = next
		}
	}
	return -1
}

// continues returns the position of the quote with which a string goes on after white space that
// has a line feed in it.
func continues(text string, pos int) (int, bool) {
	for lines := 0; pos < len(text); {
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

// dollarEnd is for what begins with a dollar sign: a string in dollar quotes, or a parameter.
func dollarEnd(text string, pos int) int {
	tagEnd := pos + 1
	for tagEnd < len(text) && isWord(text[tagEnd]) && text[tagEnd] != '$' {
		tagEnd++
	}
	digit := text[min(pos+1, len(text)-1)]
	if tagEnd == len(text) || text[tagEnd] != '$' || digit >= '0' && digit <= '9' {
		return pos + 1
	}
	tag := text[pos : tagEnd+1]
	if i := strings.Index(text[tagEnd+1:], tag); i >= 0 {
		return tagEnd + 1 + i + len(tag)
	}
	return -1
}

func wordEnd(text string, pos int) int {
	for pos < len(text) && isWord(text[pos]) {
		pos++
	}
	return pos
}

// isSpace knows the white space of Postgres. It takes \v for white space only since version 16;
// before, \v is a syntax error anyway.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// startsWord takes every byte that is not ASCII for a letter, as Postgres does.
func startsWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isWord(c byte) bool { return startsWord(c) || c >= '0' && c <= '9' || c == '$' }
