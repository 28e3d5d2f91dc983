package main

import (
	"fmt"
	"strings"
	"unicode"
)

// clean makes text fit for a terminal that comes from servers, files or stores: characters that could move the cursor, change
// the terminal or turn the direction of the text are written as escapes.
func clean(text string) string {
	control := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}
	if !strings.ContainsFunc(text, control) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if control(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
