package status

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// On a terminal each look is written over the one before, and events stay.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &statusWatch{App: &cli.App{Stdout: &out, Output: "table", Lookup: func(string) (string, bool) { return "", false }}, screen: &screen{out: &out}, since: map[string]time.Time{}}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	host := func(up bool, bytes int64) statusResult {
		h := hostStatus{Host: "pg-a", Up: up, ShardCount: 4, Expected: 4, Bytes: bytes, transactions: bytes / 100}
		if !up {
			h.Error, h.state = "dial:\n\tconnection refused", "down"
		}
		return statusResult{Cluster: "photos", ShardCount: 4, Hosts: []hostStatus{h}}
	}
	for i, test := range []struct {
		result statusResult
		want   []string
	}{
		{host(true, 1_000_000), []string{"\x1b[H\x1b[2Jphotos: 4 shards, 12:00:00\x1b[K\n", "pg-a", " up "}},
		{host(true, 1_020_000), []string{"\x1b[Hphotos: 4 shards, 12:00:02\x1b[K\n", "+10.0 kB", "100.0"}},
		{host(false, 0), []string{" down 0s ", "12:00:04 pg-a down: dial: connection refused\x1b[K\n\x1b[J"}},
		{host(false, 0), []string{" down 2s ", "12:00:04 pg-a down: dial: connection refused\x1b[K\n\x1b[J"}},
		{host(true, 1_030_000), []string{" up ", "12:00:04 pg-a down: ", "12:00:08 pg-a up again after 4s\x1b[K\n\x1b[J"}},
	} {
		out.Reset()
		if err := w.show(w.compare(at.Add(time.Duration(i)*2*time.Second), test.result, nil)); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("look %d: got %q, want %q in it", i, out.String(), want)
			}
		}
		if clears := strings.Count(out.String(), "\x1b[2J"); clears > 0 != (i == 0) {
			t.Errorf("look %d: the screen is cleared %d times", i, clears)
		}
	}
}

// That another address became the primary is an event, and that a host takes no writes meanwhile.
func TestWatchedPrimaryChanges(t *testing.T) {
	t.Parallel()
	w := &statusWatch{App: &cli.App{}, since: map[string]time.Time{}}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	host := func(recovery bool, roles ...string) statusResult {
		h := hostStatus{Host: "pg-a", Up: true, Recovery: recovery}
		for i, role := range roles {
			h.Addresses = append(h.Addresses, addressStatus{Address: []string{"one", "two"}[i], Role: role})
		}
		return statusResult{Hosts: []hostStatus{h}}
	}
	for i, test := range []struct {
		result statusResult
		want   []string
	}{
		{host(false, "primary", "standby"), nil},
		{host(false, "primary", "down"), nil},
		{host(true, "down", "standby"), []string{"takes no writes: it is a standby"}},
		{host(false, "down", "primary"), []string{"the primary is at two instead of none", "takes writes"}},
		{host(false, "primary", "down"), []string{"the primary is at one instead of two"}},
	} {
		var got []string
		for _, e := range w.compare(at.Add(time.Duration(i)*time.Second), test.result, nil).Events {
			got = append(got, e.What)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("look %d: got %q, want %q", i, got, test.want)
		}
	}
}
