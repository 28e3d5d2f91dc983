// Package progress shows how work over many shards goes on: as bars on a terminal, else as lines.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Bars returns progress with a bar for each host.
func Bars(doing string, terminal *os.File) fanout.Progress {
	return &bars{doing: doing, container: mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(60)), bars: map[string]*hostBar{}}
}

// Lines returns progress with a line for each host every few seconds, and one at the end.
func Lines(doing string, out io.Writer) fanout.Progress {
	return &lines{doing: doing, out: out, hosts: map[string]*hostLine{}}
}

type bars struct {
	doing     string
	container *mpb.Progress
	bars      map[string]*hostBar
}

type hostBar struct {
	bar    *mpb.Bar
	failed atomic.Int64           // read while the bar is drawn, and so is
	pace   atomic.Pointer[string] // what pace.String says
	own    pace
}

func (b *bars) Begin(host string, total int) {
	h := &hostBar{own: pace{began: time.Now()}}
	h.bar = b.container.AddBar(int64(total),
		mpb.PrependDecorators(
			decor.Name(b.doing+" "+host, decor.WC{C: decor.DindentRight | decor.DextraSpace}),
			decor.CountersNoUnit("%d / %d", decor.WCSyncWidth),
		),
		mpb.AppendDecorators(
			decor.Percentage(decor.WC{W: 5}),
			decor.Any(func(decor.Statistics) string {
				text := ""
				if failed := h.failed.Load(); failed > 0 {
					text = fmt.Sprintf("  %d failed", failed)
				}
				if pace := h.pace.Load(); pace != nil {
					text += "  " + *pace
				}
				return text
			}),
			decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), " done"),
		),
	)
	b.bars[host] = h
}

func (b *bars) Finished(host string, n shards.Number, err error, d time.Duration) {
	h := b.bars[host]
	h.own.add(n, d)
	text := h.own.String()
	h.pace.Store(&text)
	if err != nil {
		h.failed.Add(1)
	}
	h.bar.Increment()
}

func (b *bars) End() {
	for _, h := range b.bars {
		h.bar.Abort(false) // a bar that is full stays as it is
	}
	b.container.Wait()
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
