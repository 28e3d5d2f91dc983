package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// oneLine keeps what somebody wrote from looking like more than one line, and from steering the terminal.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// stamp writes a moment to the second, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// thousands returns a number with commas: 1,048,576.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// count returns a number and its noun: "1 shard", "2,048 shards".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}
