package shards

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
	"github.com/kiloshard/kiloshard/shards/internal/configtext"
)

// format says how kiloshard.yaml is written. The names of its fields are in the tags of [Config].
var format = configfile.Format{
	Scalars: []configfile.Scalar{
		configfile.ScalarOf(`shards such as 7, 0-1023 or "0-9,77"`, readSet, writeSet),
		configfile.ScalarOf(expectedTime, readTime, writeTime),
		configfile.ScalarOf(expectedKey, readKey, Key.written),
		configfile.ScalarOf("", nil, strategyField),
		configfile.ScalarOf("", nil, writeExtension),
	},
	Expected: configtext.Expected,
	Keys:     map[string][]string{"store.local": LocalKeys},
	Advise: func(unknown string, names []string) string {
		if _, err := ParseSet(unknown); err == nil && slices.Contains(names, "shards") {
			return `; a list of shards with a comma stands in quotes, such as "0-9,77"`
		}
		return ""
	},
}

const (
	expectedTime = "a time such as 2026-01-01T00:00:00Z, or a day such as 2026-01-01"
	expectedKey  = "a whole number of 64 bits, or a text in quotes"
)

// remoteFieldNames are those of a config without a map.
var remoteFieldNames = []string{"cluster", "store", "migrations", "password_command"}

func readSet(text string, _ bool) (Set, error) { return ParseSet(text) }

// writeSet writes a set, in quotes if it has commas.
func writeSet(s Set) string {
	text := s.String()
	if strings.Contains(text, ",") {
		return strconv.Quote(text)
	}
	return text
}

// readTime reads a time, or a day, which means midnight UTC of that day.
func readTime(text string, number bool) (time.Time, error) {
	if number {
		return time.Time{}, &FieldError{Found: "a number", Expected: expectedTime}
	}
	for _, format := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(format, text); err == nil {
			return t.UTC(), nil
		}
	}
	found := quoted(text)
	if strings.Trim(text, "0123456789-:.+TZ ") == "" {
		found = strconv.Quote(text)
	}
	return time.Time{}, &FieldError{Found: found, Expected: expectedTime}
}

func writeTime(t time.Time) string { return t.Format(time.RFC3339Nano) }

// readKey reads a number or a text, with or without quotes.
func readKey(text string, number bool) (Key, error) {
	if !number {
		return TextKey(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return Key{}, &FieldError{Found: text, Expected: expectedKey}
	}
	return NumberKey(n), nil
}

// writeExtension writes only the name if the rest is the default.
func writeExtension(e Extension) string {
	if e.Schema == "public" && e.Version == "" {
		return configfile.Plain(e.Name)
	}
	text := "{name: " + configfile.Plain(e.Name) + ", schema: " + configfile.Plain(e.Schema)
	if e.Version != "" {
		text += ", version: " + strconv.Quote(e.Version)
	}
	return text + "}"
}

// strategyField writes the strategy of a map: each range has a line of its own.
func strategyField(s Strategy) string {
	if s.By != ByRange {
		return s.String()
	}
	text := "\n  by: range"
	if s.RefuseIDs {
		text += "\n  refuse_ids: true"
	}
	text += "\n  ranges:"
	for _, r := range s.Ranges {
		text += "\n    - " + r.written()
	}
	if s.Next != 0 {
		text += "\n  next: " + strconv.FormatInt(s.Next, 10)
	}
	return text
}

// located adds the file and the line to an error: the line of its field, or of the nearest field around it.
func located(name string, lines configfile.Lines, err error) error {
	var e *FieldError
	if broken := (*configfile.Error)(nil); errors.As(err, &broken) {
		e = &FieldError{Line: broken.Line, Field: broken.Field, Found: broken.Found, Expected: broken.Expected}
		if cause := (*FieldError)(nil); errors.As(broken.Err, &cause) {
			e.Found, e.Expected = cause.Found, cause.Expected
		}
	} else if !errors.As(err, &e) {
		return err
	}
	e.File = name
	if e.Line == 0 {
		e.Line = lines.Of(e.Field)
	}
	return e
}
