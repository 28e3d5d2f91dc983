package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// look is what a line of kiloshard status --watch -o json holds.
type look struct {
	Hosts []struct {
		Up bool `json:"up"`
	} `json:"hosts"`
	Rates []struct {
		Host string `json:"host"`
	} `json:"rates"`
	Events []struct {
		Host string `json:"host"`
		What string `json:"what"`
	} `json:"events"`
}

// looks reads what kiloshard status --watch -o json prints, until a look is as expected.
type looks struct {
	t       *testing.T
	decoder *json.Decoder
}

func (l *looks) await(what string, is func(look) bool) look {
	l.t.Helper()
	for {
		var next look
		if err := l.decoder.Decode(&next); err != nil { // the program ends with the test's time
			l.t.Fatalf("%s: %v", what, err)
		}
		if is(next) {
			return next
		}
	}
}

// Of two hosts one is killed and comes back, while they are watched. Then Ctrl-C ends the watch.
func TestWatchedHostIsKilled(t *testing.T) {
	t.Parallel()
	c := setupKills(t, 4).cluster()
	cmd := c.command("status", "--watch", "--every", "50ms", "--timeout", "60s", "-o", "json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := &looks{t, json.NewDecoder(out)}
	isUp := func(l look) bool { return l.Hosts[0].Up && l.Hosts[1].Up }
	watch.await("both up", isUp)

	if err := c.servers[1].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	down := watch.await("one down", func(l look) bool { return !l.Hosts[1].Up })
	if !down.Hosts[0].Up || len(down.Events) != 1 || down.Events[0].Host != "pg-b" || !strings.HasPrefix(down.Events[0].What, "down: ") {
		t.Errorf("one down: %+v", down)
	}
	if len(down.Rates) != 1 || down.Rates[0].Host != "pg-a" {
		t.Errorf("rates while one is down: %+v", down.Rates)
	}
	if err := c.servers[1].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := watch.await("both up again", isUp)
	if len(up.Events) != 1 || !strings.HasPrefix(up.Events[0].What, "up again after ") {
		t.Errorf("both up again: %+v", up.Events)
	}

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for watch.decoder.Decode(new(look)) == nil { // until it has ended
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("after Ctrl-C: %v\n%s", err, stderr.String())
	}
}
