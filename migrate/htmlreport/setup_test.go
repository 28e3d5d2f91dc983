package htmlreport_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/htmlreport"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// page is a report, read back.
type page struct {
	t       *testing.T
	source  string
	squares []square            // of the map, in order
	rows    map[string][]string // by the heading's id, the rows of the table behind it: cells with | between them
	text    string              // all that is not in a title
}

type square struct{ class, title string }

// write writes a report and reads it back, which it can only if the tags are balanced.
func write(t *testing.T, c *htmlreport.Collector, m *shards.Map, report migrate.Report, err error) *page {
	t.Helper()
	var partial *shards.PartialError
	errors.As(err, &partial)
	var out bytes.Buffer
	if err := c.Write(&out, m, report, partial); err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, source: out.String(), rows: map[string][]string{}}
	decoder := xml.NewDecoder(&out)
	decoder.Strict, decoder.AutoClose = false, xml.HTMLAutoClose
	var text strings.Builder
	var heading string
	var cells []string
	var inMap bool
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it is no HTML that can be read: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
			}
			switch token.Name.Local {
			case "h2":
				heading = attributes["id"]
			case "div":
				inMap = attributes["class"] == "map"
			case "i":
				if inMap {
					p.squares = append(p.squares, square{attributes["class"], attributes["title"]})
					if len(token.Attr) != 2 {
						t.Errorf("a square has the attributes %v", token.Attr)
					}
				}
			case "tr":
				cells = nil
			case "td":
				cells = append(cells, "")
			case "script", "link", "img", "iframe", "object", "a":
				t.Errorf("it has a tag %s", token.Name.Local)
			}
		case xml.EndElement:
			switch token.Name.Local {
			case "div":
				inMap = false
			case "tr":
				if cells != nil {
					p.rows[heading] = append(p.rows[heading], strings.Join(cells, "|"))
				}
			}
		case xml.CharData:
			text.Write(token)
			if len(cells) > 0 {
				cells[len(cells)-1] += string(token)
			}
		}
	}
	p.text = text.String()
	return p
}

// has checks what one square shows: its class, and a title that begins and ends like this.
func (p *page) has(n int, class, begins, ends string) {
	p.t.Helper()
	s := p.squares[n]
	if s.class != class || !strings.HasPrefix(s.title, begins) || !strings.HasSuffix(s.title, ends) {
		p.t.Errorf("square %d: got %q %q, want %q %q … %q", n, s.class, s.title, class, begins, ends)
	}
}

func (p *page) says(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.text, text) {
			p.t.Errorf("it does not say %q", text)
		}
	}
}

// noHosts returns a map whose hosts nobody asks.
func noHosts(t *testing.T, count int) *shards.Map {
	t.Helper()
	m, err := shardtest.MapConfig(count, []shards.Host{{Name: "pg-a", DSN: "postgres://app:s3cr3t@a/app"}, {Name: "pg-b", DSN: "postgres://app:s3cr3t@b/app"}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ended(n shards.Number, took time.Duration) migrate.Event {
	return migrate.Event{Kind: migrate.ShardDone, Shard: n, From: 1, To: 5, Took: took}
}

func shardError(m *shards.Map, n shards.Number, err error) *shards.ShardError {
	return &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: m.Host(n).Name, Err: err}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func set(t *testing.T, text string) shards.Set {
	t.Helper()
	s, err := shards.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
