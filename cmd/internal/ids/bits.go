package ids

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// drawing draws the 64 bits of an ID, with its fields under them.
func (e explained) drawing() string {
	digits := fmt.Sprintf("%064b", e.bits)
	var top, bottom []string
	at := 0
	for _, f := range e.scheme.fields() {
		bits := digits[at : at+f.bits]
		at += f.bits
		text := f.name
		if f.name == "time" {
			text = fmt.Sprintf("%d ms since the epoch", e.made.UnixMilli()-e.scheme.epoch.UnixMilli())
		}
		for _, v := range e.values {
			if v.name == f.name {
				text = fmt.Sprintf("%s %d", v.name, v.number)
			}
		}
		width := max(len(bits), utf8.RuneCountInString(text))
		top = append(top, fmt.Sprintf("%-*s", width, bits))
		bottom = append(bottom, fmt.Sprintf("%-*s", width, text))
	}
	line := func(cells []string) string { return strings.TrimRight(strings.Join(cells, " | "), " ") }
	return line(top) + "\n" + line(bottom)
}

// printID prints one ID for a person: its bits and its fields.
func printID(a *cli.App, e explained, now time.Time) error {
	return a.Print([]explained{e}, func() {
		rows := [][2]string{{"id", e.id()}}
		if e.scheme.layout.HasTime() {
			rows = append(rows, [2]string{"time", e.made.Format(timeFormat) + ", " + ago(e.made, now)})
		}
		for _, v := range e.values {
			text := strconv.FormatUint(v.number, 10)
			for i, inner := range v.inner() {
				text += fmt.Sprintf("%s%s %d", []string{", that is ", ", "}[min(i, 1)], inner.name, inner.number)
			}
			rows = append(rows, [2]string{v.name, text})
		}
		if e.scheme.m != nil {
			schema, host := e.place()
			rows = append(rows, [2]string{"schema", schema}, [2]string{"host", host})
		}
		layout := e.scheme.text()
		if e.scheme.name != "" {
			var fields []string
			for _, f := range e.scheme.fields() {
				if f.name != "" {
					fields = append(fields, fmt.Sprintf("%d %s", f.bits, f.name))
				}
			}
			layout += ", " + strings.Join(fields, "|")
		}
		if e.scheme.layout.HasTime() {
			layout += ", epoch " + e.scheme.epoch.Format(time.RFC3339Nano)
		}
		rows = append(rows, [2]string{"layout", layout})

		a.Say("%s\n", e.drawing())
		for _, row := range rows {
			a.Say("%-9s %s", row[0], row[1])
		}
	})
}

// ago returns how long before or after now a time is.
func ago(t, now time.Time) string {
	const day, year = 24 * time.Hour, 31_556_952 * time.Second // 365.2425 days
	passed := now.Sub(t)
	between := max(passed, -passed, 0)
	if passed == math.MinInt64 {
		between = math.MaxInt64
	}
	text := ""
	for _, unit := range []struct {
		noun   string
		length time.Duration
	}{{"year", year}, {"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if between >= 2*unit.length || unit.noun == "second" && between >= unit.length {
			text = cli.Count(int(between/unit.length), unit.noun)
			break
		}
	}
	switch {
	case text == "":
		return "just now"
	case passed < 0:
		return "in " + text
	}
	return text + " ago"
}
