package queries

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Entry is a statement that a server has logged.
type Entry struct {
	Session    string // empty if the log does not say
	SQL        string
	Parameters map[string]string // by name, such as $1
	Seconds    float64
}

// maxLine is the longest line that is read, in bytes.
const maxLine = 16 << 20

// ReadLog calls each with the statements of a server's log, in the format of csvlog, jsonlog or stderr. It reads what
// log_min_duration_statement, log_statement and log_duration write. Of csvlog and jsonlog it leaves out other databases than this one, if
// database is not empty. In the stderr format a process ID in brackets, as in the default log_line_prefix, tells sessions apart.
func ReadLog(in io.Reader, database string, each func(Entry) error) error {
	buffered := bufio.NewReaderSize(in, 1<<16)
	start, err := buffered.Peek(200)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	r := &logReader{each: each, open: map[string]*lastEntry{}}
	switch {
	case csvStart.Match(start):
		err = r.csv(buffered, database)
	case bytes.HasPrefix(start, []byte("{")):
		err = r.json(buffered, database)
	default:
		err = r.stderr(buffered)
	}
	return errors.Join(err, r.flush())
}

// csvStart is a time, then the quoted names of user and database, or none.
var csvStart = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^,"]*,("|,)`)

// logReader puts the messages of a log together.
type logReader struct {
	each  func(Entry) error
	open  map[string]*lastEntry // of each session, whose duration or parameters may follow
	count int                   // statements
}

// lastEntry is the last statement of a session.
type lastEntry struct {
	Entry
	number int // in the log
}

var (
	message   = regexp.MustCompile(`(?s)^(?:duration: ([0-9.]+) ms(?:  )?)?(?:(statement|execute [^:]*|parse [^:]*|bind [^:]*): (.*))?$`)
	parameter = regexp.MustCompile(`(\$\d+) = ('(?:[^']|'')*'|NULL)`)
)

// took takes a message of level LOG.
func (r *logReader) took(session, text string) error {
	m := message.FindStringSubmatch(text)
	if m == nil || m[0] == "" {
		return nil
	}
	milliseconds, _ := strconv.ParseFloat(m[1], 64)
	if m[2] == "" { // the duration of the statement before
		if e := r.open[session]; e != nil {
			e.Seconds += milliseconds / 1000
		}
		return nil
	}
	if kind, _, _ := strings.Cut(m[2], " "); kind != "statement" && kind != "execute" {
		return nil
	}
	if err := r.close(session); err != nil {
		return err
	}
	r.count++
	r.open[session] = &lastEntry{Entry{Session: session, SQL: m[3], Seconds: milliseconds / 1000}, r.count}
	return nil
}

// detail takes the detail of a message.
func (r *logReader) detail(session, text string) {
	e := r.open[session]
	if e == nil || len(text) < 11 || !strings.EqualFold(text[:11], "parameters:") {
		return
	}
	e.Parameters = map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		value := m[2]
		if value != "NULL" {
			value = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
		}
		e.Parameters[m[1]] = value
	}
}

// close reports the statement of a session.
func (r *logReader) close(session string) error {
	e := r.open[session]
	if e == nil {
		return nil
	}
	delete(r.open, session)
	return r.each(e.Entry)
}

func (r *logReader) flush() error {
	byNumber := func(a, b string) int { return r.open[a].number - r.open[b].number }
	for _, session := range slices.SortedFunc(maps.Keys(r.open), byNumber) {
		if err := r.close(session); err != nil {
			return err
		}
	}
	return nil
}

// The columns of csvlog, 0-based.
const (
	csvDatabase = 2
	csvSession  = 5
	csvLevel    = 11
	csvMessage  = 13
	csvDetail   = 14
)

func (r *logReader) csv(in io.Reader, database string) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	for {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(row) <= csvDetail:
			return fmt.Errorf("a line of csvlog has %d columns, expected 23 or more", len(row))
		case row[csvLevel] != "LOG" || database != "" && row[csvDatabase] != database:
			continue
		}
		session := strings.Clone(row[csvSession])
		if err := r.took(session, strings.Clone(row[csvMessage])); err != nil {
			return err
		}
		r.detail(session, row[csvDetail])
	}
}

func (r *logReader) json(in io.Reader, database string) error {
	objects := json.NewDecoder(in)
	for {
		var o struct {
			Database string `json:"dbname"`
			Session  string `json:"session_id"`
			Level    string `json:"error_severity"`
			Message  string `json:"message"`
			Detail   string `json:"detail"`
		}
		switch err := objects.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("jsonlog: %w", err)
		case o.Level != "LOG" || database != "" && o.Database != database:
			continue
		}
		if err := r.took(o.Session, o.Message); err != nil {
			return err
		}
		r.detail(o.Session, o.Detail)
	}
}

var (
	level   = regexp.MustCompile(`^(.*?)\b(LOG|DETAIL|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?|STATEMENT|HINT|CONTEXT|QUERY|LOCATION):  (.*)$`)
	process = regexp.MustCompile(`\[(\d+)(?:-\d+)?\]`)
)

func (r *logReader) stderr(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var session, kind string
	var text strings.Builder
	done := func() error {
		defer text.Reset()
		switch kind {
		case "LOG":
			return r.took(session, text.String())
		case "DETAIL":
			r.detail(session, text.String())
		}
		return nil
	}
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if m := level.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "\t") {
			if err := done(); err != nil {
				return err
			}
			kind, session = m[2], ""
			if p := process.FindStringSubmatch(m[1]); p != nil {
				session = p[1]
			}
			text.WriteString(m[3])
			continue
		}
		text.WriteString("\n" + strings.TrimPrefix(line, "\t"))
	}
	return errors.Join(lines.Err(), done())
}
