package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// print prints a result: as JSON, or as whatever table writes for a person.
func (a *app) print(result any, table func()) error {
	if a.output != "json" {
		table()
		return nil
	}
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

// table prints rows in columns, the first row being the head. A column whose head starts with ">"
// is aligned to the right.
func (a *app) table(rows [][]string) {
	if len(rows) == 0 {
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

// say prints a line for people, and nothing when JSON was asked for.
func (a *app) say(format string, args ...any) {
	if a.output != "json" {
		fmt.Fprintf(a.stdout, format+"\n", args...)
	}
}

// count returns a number and its noun: "1 shard", "2,048 shards".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

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
