package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleaned filters all output of the command, so that nothing from servers, files or stores controls the terminal,
// wherever it is printed. It writes as [Clean] does.
type cleaned struct {
	to     io.Writer
	reader *reader
}

// Write writes all of the text at once. A character cut off at its end is invalid. It returns no error: [App.Exit] says what failed.
func (c cleaned) Write(p []byte) (int, error) {
	_, err := io.WriteString(c.to, Clean(string(p)))
	c.reader.wrote(err)
	return len(p), nil
}

// Raw returns the writer below a cleaned one: for the command's own colors and screens, and for programs that it runs.
func Raw(w io.Writer) io.Writer {
	if c, ok := w.(cleaned); ok {
		return c.to
	}
	return w
}

// FileOf returns the file that is below a writer, if it is one.
func FileOf(w io.Writer) (*os.File, bool) {
	file, ok := Raw(w).(*os.File)
	return file, ok
}

// Clean makes text fit for a terminal that comes from servers, files or stores: characters that could move the cursor, change
// the terminal or turn the direction of the text are written as escapes.
func Clean(text string) string {
	control := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}
	if !strings.ContainsFunc(text, control) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1: // a byte that some terminals take for a control character
			b.WriteRune(utf8.RuneError)
		case control(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
