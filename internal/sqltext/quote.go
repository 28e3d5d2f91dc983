package sqltext

import "strings"

// Quote returns a text as an SQL constant, for standard_conforming_strings on or off. It avoids single quotes if it can:
// after a text that leaves a quote open, the server then reports the open quote and no other error.
func Quote(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	const dollar = "$value$"
	if !strings.Contains(text, "$") {
		return dollar + text + dollar
	}
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// Shortened returns a text on one line, cut off if it is long.
func Shortened(text string) string {
	const most = 160 // characters
	short := []rune(strings.Join(strings.Fields(text), " "))
	if len(short) > most {
		return string(short[:most-1]) + "…"
	}
	return string(short)
}
