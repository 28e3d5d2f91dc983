package status

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// latestEvents is how many events are shown on a terminal.
const latestEvents = 8

// wideScreen is how many characters a terminal needs for all columns; on another one the address, the versions and the standbys are left out.
const wideScreen = 120

// statusLook is the JSON output of kiloshard status --watch, a line for each look.
type statusLook struct {
	At time.Time `json:"at"`
	statusResult
	Rates  []hostRate    `json:"rates"`  // of the hosts that answered this time and the time before
	Events []statusEvent `json:"events"` // since the look before
}

// hostRate is how fast a host changes.
type hostRate struct {
	Host         string  `json:"host"`
	Bytes        float64 `json:"bytes_per_second"`
	Transactions float64 `json:"transactions_per_second"`
}

// statusEvent is a change that is printed.
type statusEvent struct {
	At   time.Time `json:"at"`
	Host string    `json:"host,omitempty"`
	What string    `json:"what"`
}

// statusWatch looks at the hosts again and again.
type statusWatch struct {
	*cli.App
	screen *screen // nil unless it stays in its place on a terminal
	before *statusLook
	since  map[string]time.Time // when hosts went down
	latest []statusEvent
}

// watchStatus prints how the hosts are at once and then every so often, until ctx ends, or so many times.
func watchStatus(ctx context.Context, a *cli.App, every time.Duration, looks int, look func(context.Context) (statusResult, error)) error {
	w := &statusWatch{App: a, since: map[string]time.Time{}}
	if file, ok := cli.FileOf(a.Stdout); ok && a.Output != cli.JSON && term.IsTerminal(int(file.Fd())) {
		w.screen = &screen{out: file, colours: a.Colours()}
	}
	ctx, cancel := a.WhileRead(ctx)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ; n++ {
		result, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // what it found is cut short
		case err != nil && w.before == nil:
			return err
		}
		if err := w.show(w.compare(time.Now(), result, err)); err != nil || n == looks {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// compare finds what has changed since the look before. After an error, of a config that is being edited, what was
// there before is taken to go on.
func (w *statusWatch) compare(at time.Time, result statusResult, err error) statusLook {
	now := statusLook{At: at, statusResult: result, Rates: []hostRate{}, Events: []statusEvent{}}
	add := func(host, format string, args ...any) {
		now.Events = append(now.Events, statusEvent{at, host, fmt.Sprintf(format, args...)})
	}
	if err != nil {
		now.statusResult = w.before.statusResult
		add("", "the map could not be read: %v", err)
	} else {
		for _, h := range result.Hosts {
			old := w.find(h.Host)
			went, wasDown := w.since[h.Host]
			switch {
			case !h.Up && !wasDown:
				w.since[h.Host] = at
				add(h.Host, "%s: %s", h.state, h.Error)
			case h.Up && wasDown:
				delete(w.since, h.Host)
				add(h.Host, "up again after %s", at.Sub(went).Round(100*time.Millisecond))
			case old == nil && w.before != nil:
				add(h.Host, "new in the map")
			}
			if old != nil && old.Up && h.Up {
				now.Rates = append(now.Rates, rateOf(old, &h, at.Sub(w.before.At)))
				changed(add, old, &h)
			}
		}
		if w.before != nil {
			for _, old := range w.before.Hosts {
				if !has(result.Hosts, old.Host) {
					delete(w.since, old.Host)
					add(old.Host, "no longer in the map")
				}
			}
		}
	}
	w.before = &now
	w.latest = append(w.latest, now.Events...)
	w.latest = w.latest[max(0, len(w.latest)-latestEvents):]
	return now
}

// changed adds the differences of a host that answered both times.
func changed(add func(host, format string, args ...any), old, now *hostStatus) {
	if old.ShardCount != now.ShardCount {
		add(now.Host, "%d shards instead of %d", now.ShardCount, old.ShardCount)
	}
	if was, is := primaryOf(old), primaryOf(now); was != is && is != "" {
		add(now.Host, "the primary is at %s instead of %s", is, cmp.Or(was, "none"))
	}
	if old.Recovery != now.Recovery {
		add(now.Host, map[bool]string{true: "takes no writes: it is a standby", false: "takes writes"}[now.Recovery])
	}
	if old.Replicas != now.Replicas {
		add(now.Host, "%d replicas instead of %d", now.Replicas, old.Replicas)
	}
	if was, is := versionRange(old), versionRange(now); was != is && len(old.Versions) > 0 && len(now.Versions) > 0 {
		add(now.Host, "at version %s instead of %s", is, was)
	}
	if old.Postgres != now.Postgres {
		add(now.Host, "Postgres %s instead of %s", now.Postgres, old.Postgres)
	}
}

func rateOf(old, now *hostStatus, took time.Duration) hostRate {
	per := func(n int64) float64 { return max(0, float64(n)/took.Seconds()) } // statistics may be reset
	return hostRate{now.Host, float64(now.Bytes-old.Bytes) / took.Seconds(), per(now.transactions - old.transactions)}
}

// find returns what a host was in the look before, nil if it was not there.
func (w *statusWatch) find(host string) *hostStatus {
	if w.before == nil {
		return nil
	}
	for i := range w.before.Hosts {
		if w.before.Hosts[i].Host == host {
			return &w.before.Hosts[i]
		}
	}
	return nil
}

func has(hosts []hostStatus, name string) bool {
	for _, h := range hosts {
		if h.Host == name {
			return true
		}
	}
	return false
}

// show prints a look.
func (w *statusWatch) show(look statusLook) error {
	if w.Output == "json" {
		encoder := json.NewEncoder(w.Stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(look)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s: %s, %s\n", look.Cluster, cli.Count(look.ShardCount, "shard"), look.At.Format(time.TimeOnly))
	to := *w.App
	to.Stdout = &text
	rows := w.rows(look)
	if w.screen != nil && w.Width() < wideScreen {
		for i, row := range rows {
			rows[i] = append([]string{row[0], row[2], row[4], row[6]}, row[8:]...)
		}
	}
	to.Table(rows)
	events := look.Events
	if w.screen != nil {
		events = w.latest
		text.WriteByte('\n')
	}
	for _, e := range events {
		fmt.Fprintf(&text, "%s %s\n", e.At.Format(time.TimeOnly), strings.TrimSpace(e.Host+" "+cli.OneLine(e.What)))
	}
	if w.screen != nil {
		return w.screen.show(text.String())
	}
	_, err := fmt.Fprintln(w.Stdout, text.String())
	return err
}

// rows are those of status, with the rates, and with how long hosts have been down.
func (w *statusWatch) rows(look statusLook) [][]string {
	rows := statusRows(look.statusResult)
	rates := map[string]hostRate{}
	for _, r := range look.Rates {
		rates[r.Host] = r
	}
	rows[0] = append(rows[0], ">SESSIONS", ">GROWTH/S", ">TX/S")
	for i, h := range look.Hosts {
		sessions, growth, transactions := "?", "?", "?"
		if h.Up {
			sessions, growth, transactions = fmt.Sprint(h.Sessions), "-", "-"
		}
		if r, ok := rates[h.Host]; ok {
			growth, transactions = fmt.Sprintf("%+.1f kB", r.Bytes/1e3), fmt.Sprintf("%.1f", r.Transactions)
		}
		if went, down := w.since[h.Host]; down {
			rows[i+1][2] = h.state + " " + look.At.Sub(went).Round(time.Second).String()
		}
		rows[i+1] = append(rows[i+1], sessions, growth, transactions)
	}
	return rows
}

// screen is a terminal that is written over again and again.
type screen struct {
	out     io.Writer
	colours bool
	begun   bool
}

// downCell is the state of a host that is down, and for how long.
var downCell = regexp.MustCompile(`\b(down \d\w*)`)

// show overwrites the screen from the top, clears each line to its end, and clears the rest, so that nothing flickers.
func (s *screen) show(text string) error {
	start := "\x1b[H"
	if !s.begun {
		start += "\x1b[2J"
		s.begun = true
	}
	text = cli.Clean(text)
	if s.colours {
		text = downCell.ReplaceAllString(text, "\x1b[31m$1\x1b[0m")
	}
	_, err := io.WriteString(s.out, start+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
	return err
}
