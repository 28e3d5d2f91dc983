package server

import (
	"testing"
)

func TestStatusBytes(t *testing.T) {
	t.Parallel()
	const status = "Name:\tpostgres\nVmHWM:\t   81376 kB\nRssAnon:\t    1024 kB\nThreads:\t1\n"
	tests := []struct {
		field string
		want  int64
	}{
		{"VmHWM", 81376 * 1024},
		{"RssAnon", 1 << 20},
		{"Threads", 0},
		{"Rss", 0},
	}
	for _, test := range tests {
		if got := StatusBytes([]byte(status), test.field); got != test.want {
			t.Errorf("%s: got %d, want %d", test.field, got, test.want)
		}
	}
}
