package sqltext

import "strings"

// Kind is the kind of a [Token].
type Kind int

// The kinds of tokens.
const (
	Word    Kind = iota // a key word or a name without quotes
	Name                // a name in quotes: "…" or U&"…"
	String              // '…', E'…', B'…', X'…', U&'…', $$…$$, $tag$…$tag$; of N'…' the N is a Word
	Number              // such as 12, 1.5e3, 0x1F
	Param               // such as $1
	Symbol              // any other single character, also of an operator that has several; and ..
	Comment             // an open one: white space and comments that end are no tokens
)

// Token is a part of an SQL text.
type Token struct {
	Kind  Kind
	Text  string // with its quotes
	Start int    // where it begins in the text, in bytes
	Open  bool   // the text ends before the token does
}

// End returns where the token ends in the text, in bytes: [Start, End).
func (t Token) End() int { return t.Start + len(t.Text) }

// Is reports whether the token is a symbol, or a word without quotes, which is given in small letters.
func (t Token) Is(text string) bool {
	switch t.Kind {
	case Word:
		return len(t.Text) == len(text) && Fold(t.Text) == text
	case Symbol:
		return t.Text == text
	}
	return false
}

// Name returns the name that a Word or a Name means to Postgres: a word in small letters, what is between quotes as it
// is. It returns an empty string for any other token, for an open one, and for U&"…".
func (t Token) Name() string {
	switch {
	case t.Kind == Word:
		return Fold(t.Text)
	case t.Kind == Name && !t.Open && t.Text[0] == '"':
		return strings.ReplaceAll(t.Text[1:len(t.Text)-1], `""`, `"`)
	}
	return ""
}

// Fold returns a word in small letters. Like Postgres in UTF-8, it changes only the letters of ASCII.
func Fold(word string) string {
	for i := range len(word) {
		if c := word[i]; 'A' <= c && c <= 'Z' {
			return foldFrom(word, i)
		}
	}
	return word
}

func foldFrom(word string, first int) string {
	small := []byte(word)
	for i := first; i < len(small); i++ {
		if 'A' <= small[i] && small[i] <= 'Z' {
			small[i] += 'a' - 'A'
		}
	}
	return string(small)
}
