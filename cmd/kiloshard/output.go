package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"
)

// What -o takes.
const (
	outputTable = "table" // for people
	outputJSON  = "json"
	outputPlain = "plain" // for scripts: rows without heads, and tabs between the columns
)

var outputs = []string{outputTable, outputJSON, outputPlain}

// print prints a result: as JSON, or for people by calling table.
func (a *app) print(result any, table func()) error {
	if a.output != outputJSON {
		table()
		return nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return err
	}
	_, err := a.stdout.Write(numberList.ReplaceAllFunc(text.Bytes(), func(list []byte) []byte { return spaces.ReplaceAll(list, nil) }))
	return err
}

// A list of numbers stays on one line, such as the thousands of shards of a cluster. No string in JSON has a line break in it.
var (
	numberList = regexp.MustCompile(`\[\n\s+\d+(,\n\s+\d+)*\n\s+\]`)
	spaces     = regexp.MustCompile(`\s+`)
)

// table prints rows in columns, the first row being the head. A column whose head starts with ">"
// is aligned to the right.
func (a *app) table(rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if a.output == outputPlain {
		for _, row := range rows[1:] {
			for i := range row {
				row[i] = clean(row[i])
			}
			fmt.Fprintln(a.stdout, strings.Join(row, "\t"))
		}
		return
	}
	widths := make([]int, len(rows[0]))
	right := make([]bool, len(rows[0]))
	for i, head := range rows[0] {
		if trimmed, ok := strings.CutPrefix(head, ">"); ok {
			right[i] = true
			rows[0][i] = trimmed
		}
		for _, row := range rows {
			row[i] = clean(row[i])
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if right[i] {
				cell = strings.Repeat(" ", widths[i]-len([]rune(cell))) + cell
			}
			cells[i] = cell
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
	}
	_ = w.Flush() // errors of standard output are not acted on
}

// say prints a line for people, and nothing when something for programs was asked for.
func (a *app) say(format string, args ...any) {
	if a.output == outputTable && !a.quiet {
		fmt.Fprintln(a.stdout, fmt.Sprintf(format, args...))
	}
}

// value prints the one value that a command is run for: to people in a sentence, if there is one, to a script by itself.
func (a *app) value(value, format string, args ...any) {
	if a.output == outputPlain || a.quiet {
		fmt.Fprintln(a.stdout, value)
		return
	}
	a.say(format, args...)
}

// warn prints a line on standard error that is no error, unless nothing is to be heard but errors.
func (a *app) warn(format string, args ...any) {
	if a.quiet {
		return
	}
	line := fmt.Sprintf(format, args...)
	if rest, ok := strings.CutPrefix(line, "warning:"); ok {
		a.complain("warning:", yellow, rest)
		return
	}
	fmt.Fprintln(a.stderr, line)
}
