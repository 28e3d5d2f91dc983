// Package progress shows how work over many shards goes on: as bars on a terminal, else as lines.
package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Lines returns progress with a line for each host every few seconds, and one at the end.
func Lines(doing string, out io.Writer) fanout.Progress {
	return &lines{doing: doing, out: out, hosts: map[string]*hostLine{}}
}

type lines struct {
	doing string
	out   io.Writer
	hosts map[string]*hostLine
	order []string
}

type hostLine struct {
	total, done, failed int
	printed             time.Time
	pace                pace
}

const lineEvery = 5 * time.Second

func (l *lines) Begin(host string, total int) {
	l.hosts[host] = &hostLine{total: total, printed: time.Now(), pace: pace{began: time.Now()}}
	l.order = append(l.order, host)
}

func (l *lines) Finished(host string, n shards.Number, err error, d time.Duration) {
	h := l.hosts[host]
	h.pace.add(n, d)
	if err != nil {
		h.failed++
	} else {
		h.done++
	}
	if time.Since(h.printed) >= lineEvery {
		l.print(host)
	}
}

func (l *lines) End() {
	for _, host := range l.order {
		l.print(host)
	}
}

func (l *lines) print(host string) {
	h := l.hosts[host]
	h.printed = time.Now()
	fmt.Fprintf(l.out, "%s %s: %d of %d shards done, %d failed%s\n", l.doing, host, h.done, h.total, h.failed, h.pace.left(h.total))
}
