package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// What -o takes.
const (
	Table = "table" // for people
	JSON  = "json"
	Plain = "plain" // for scripts: rows without heads, and tabs between the columns
)

var outputs = []string{Table, JSON, Plain}

// Print prints a result: as JSON, or for people by calling table.
func (a *App) Print(result any, table func()) error {
	if a.Output != JSON {
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
	_, err := a.Stdout.Write(numberList.ReplaceAllFunc(text.Bytes(), func(list []byte) []byte { return spaces.ReplaceAll(list, nil) }))
	return err
}

// A list of numbers stays on one line, such as the thousands of shards of a cluster. No string in JSON has a line break in it.
var (
	numberList = regexp.MustCompile(`\[\n\s+\d+(,\n\s+\d+)*\n\s+\]`)
	spaces     = regexp.MustCompile(`\s+`)
)

// Table prints rows in columns, the first row being the head. A head that begins with ">" aligns its column to the right; with "~" the
// column is cut where the terminal is too narrow for the table; with "!" what is not up is red on a terminal.
func (a *App) Table(rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if a.Output == Plain {
		for _, row := range rows[1:] {
			for i := range row {
				row[i] = Clean(row[i])
			}
			fmt.Fprintln(a.Stdout, strings.Join(row, "\t"))
		}
		return
	}
	widths, marks := make([]int, len(rows[0])), make([]byte, len(rows[0]))
	for i, head := range rows[0] {
		if head != "" && strings.IndexByte(">~!", head[0]) >= 0 {
			marks[i], rows[0][i] = head[0], head[1:]
		}
		for _, row := range rows {
			row[i] = Clean(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	a.fit(rows, widths, marks)
	colours := a.colours(a.Stdout)
	for n, row := range rows {
		line := ""
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell))
			if marks[i] == '!' && n > 0 && colours && cell != "up" && cell != "standby" {
				cell = coloured(cell, red)
			}
			if marks[i] == '>' {
				line += space + cell + "  "
			} else {
				line += cell + space + "  "
			}
		}
		a.printRaw(strings.TrimRight(line, " ") + "\n")
	}
}

// printRaw prints a text with colours, whose parts are clean.
func (a *App) printRaw(text string) {
	_, err := io.WriteString(Raw(a.Stdout), text)
	if c, ok := a.Stdout.(cleaned); ok {
		c.reader.wrote(err)
	}
}

// Say prints a line for people, and nothing when something for programs was asked for. On a terminal a sentence is broken between words.
func (a *App) Say(format string, args ...any) {
	if a.Output != Table || a.Quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if width, ok := a.knownWidth(); ok && !strings.Contains(text, "\n") {
		text = broken(width, text)
	}
	fmt.Fprintln(a.Stdout, text)
}

// Value prints the one value that a command is run for: to people in a sentence, if there is one, to a script by itself.
func (a *App) Value(value, format string, args ...any) {
	if a.Output == Plain || a.Quiet {
		fmt.Fprintln(a.Stdout, value)
		return
	}
	a.Say(format, args...)
}

// Warn prints a line on standard error that is not an error, except with --quiet.
func (a *App) Warn(format string, args ...any) {
	if a.Quiet {
		return
	}
	line := fmt.Sprintf(format, args...)
	if rest, ok := strings.CutPrefix(line, "warning:"); ok {
		a.complain("warning:", yellow, rest)
		return
	}
	fmt.Fprintln(a.Stderr, a.forTerminal(line))
}

// WhileRead returns a context that also ends when nobody reads standard output any more, for commands that do nothing but print.
func (a *App) WhileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if out, ok := a.Stdout.(cleaned); ok {
		go func() {
			select {
			case <-out.reader.gone:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}
