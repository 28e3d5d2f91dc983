package sqltext

import "slices"

// Statement is one statement of an SQL text, in bytes: [Start, End) from its first token to the end of its last one,
// without the semicolon.
type Statement struct {
	Start, End int

	// Words are the words that it begins with, in small letters, as far as nothing else stands between them; the first
	// few of them.
	Words []string

	// Before and Semicolon are the bounds of the text that belongs to the statement with the comments around it: [Before,
	// Semicolon) from behind the semicolon before it to its own, or to the end of the text.
	Before, Semicolon int
}

// StartsWith reports whether the statement begins with the words, which are in small letters.
func (s Statement) StartsWith(words ...string) bool {
	return len(s.Words) >= len(words) && slices.Equal(s.Words[:len(words)], words)
}

// Split returns the statements of an SQL text in order, as Postgres counts them: empty ones do not count. It returns
// false when it cannot tell where a statement ends, as in a text with a quote that is never closed, and then also returns
// what it found. Like psql it ends no statement within parentheses (CREATE RULE), nor within the BEGIN ATOMIC … END of a
// function.
func Split(text string) ([]Statement, bool) {
	return (&Scanner{Text: text}).Split()
}

// Split returns the statements from here to the end of the text, as [Split] does.
func (s *Scanner) Split() ([]Statement, bool) {
	sp := splitter{sure: true, before: s.pos}
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		sp.add(t)
	}
	sp.finish(len(s.Text))
	return sp.found, sp.sure && sp.depth == 0 && sp.atomic == 0
}

// maxWords is how many words of a statement's beginning are kept.
const maxWords = 6

// splitter is the state of [Scanner.Split].
type splitter struct {
	found  []Statement
	sure   bool // no token is open, and no parenthesis closed that was not opened
	before int  // behind the last semicolon that ended a statement, or an empty one

	open    bool // a statement has begun
	current Statement
	leading bool  // only words have been seen of it
	last    Token // its last token
	depth   int   // open parentheses
	atomic  int   // BEGIN ATOMIC and the CASEs within it that wait for their END
}

func (sp *splitter) add(t Token) {
	if t.Is(";") && sp.depth == 0 && sp.atomic == 0 {
		sp.finish(t.Start)
		return
	}
	if !sp.open {
		sp.open, sp.leading = true, true
		sp.current = Statement{Start: t.Start, Before: sp.before}
	}
	sp.leading = sp.leading && t.Kind == Word
	if sp.leading && len(sp.current.Words) < maxWords {
		sp.current.Words = append(sp.current.Words, Fold(t.Text))
	}
	sp.current.End = t.End()
	sp.sure = sp.sure && !t.Open
	switch {
	case t.Is("("):
		sp.depth++
	case t.Is(")") && sp.depth == 0:
		sp.sure = false // a syntax error, after which psql goes on as if it were not there
	case t.Is(")"):
		sp.depth--
	case t.Kind == Word && !sp.last.Is(".") && !sp.last.Is("as"): // else it is a name, whatever it looks like
		sp.keyword(t)
	}
	sp.last = t
}

// keyword keeps count of BEGIN ATOMIC … END.
func (sp *splitter) keyword(t Token) {
	switch {
	case sp.atomic == 0:
		if t.Is("atomic") && sp.last.Is("begin") && sp.current.makesRoutine() {
			sp.atomic = 1
		}
	case t.Is("case"):
		sp.atomic++
	case t.Is("end"):
		sp.atomic--
	}
}

func (sp *splitter) finish(semicolon int) {
	if sp.open {
		sp.current.Semicolon = semicolon
		sp.found = append(sp.found, sp.current)
	}
	sp.open, sp.last, sp.before = false, Token{}, semicolon+1
}

// makesRoutine reports whether the statement is a CREATE FUNCTION or CREATE PROCEDURE.
func (s Statement) makesRoutine() bool {
	return s.StartsWith("create", "function") || s.StartsWith("create", "or", "replace", "function") ||
		s.StartsWith("create", "procedure") || s.StartsWith("create", "or", "replace", "procedure")
}
