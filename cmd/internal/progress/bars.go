package progress

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Bars returns progress with a bar for each host, and one for all together. Hosts for which the terminal has no row share one.
func Bars(doing string, terminal *os.File) fanout.Progress {
	rows := 24
	if _, height, err := term.GetSize(int(terminal.Fd())); err == nil && height > 0 {
		rows = height
	}
	return &bars{
		doing: doing, container: mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(24)), byHost: map[string]*bar{},
		most: max(0, rows-4), // besides the bar of the other hosts, that of all, the command line and the cursor
	}
}

type bars struct {
	doing     string
	container *mpb.Progress
	most      int // hosts with a bar of their own
	byHost    map[string]*bar
	others    *bar // of all hosts without one; nil while there are none
	shared    int  // how many these are
	all       *bar // nil while there is one host
	sum       int  // of the shards of all hosts
}

type bar struct {
	*mpb.Bar
	name   atomic.Pointer[string]
	total  int
	failed atomic.Int64           // read while the bar is drawn, and so is
	rest   atomic.Pointer[string] // how fast it goes, and how long the rest takes
	pace   pace
}

// Begin adds the bar of a host. The bar of all comes with the second one, and stays below the others.
func (b *bars) Begin(host string, total int) {
	if own := len(b.byHost) - b.shared; own < b.most {
		b.byHost[host] = b.add(host, own)
	} else {
		if b.others == nil {
			b.others = b.add("", b.most)
		}
		b.shared++
		b.others.rename(fmt.Sprintf("%d more", b.shared))
		b.byHost[host] = b.others
	}
	b.byHost[host].extend(total)
	b.sum += total
	switch {
	case b.all != nil:
		b.all.extend(total)
	case len(b.byHost) > 1:
		b.all = b.add("all", b.most+1)
		b.all.extend(b.sum)
	}
}

func (b *bars) add(name string, priority int) *bar {
	h := &bar{pace: pace{began: time.Now()}}
	h.rename(name)
	h.Bar = b.container.AddBar(0, // which ends by SetTotal or Abort only
		mpb.BarPriority(priority),
		mpb.PrependDecorators(
			decor.Any(func(decor.Statistics) string { return b.doing + " " + *h.name.Load() }, decor.WC{C: decor.DSyncWidth | decor.DindentRight | decor.DextraSpace}),
			decor.CountersNoUnit("%d/%d", decor.WCSyncWidth),
		),
		mpb.AppendDecorators(
			decor.Percentage(decor.WC{W: 5}),
			decor.Any(func(decor.Statistics) string {
				text := ""
				if failed := h.failed.Load(); failed > 0 {
					text = fmt.Sprintf("  %d failed", failed)
				}
				if rest := h.rest.Load(); rest != nil {
					text += "  " + *rest
				}
				return text
			}),
		),
	)
	return h
}

func (h *bar) rename(name string) { h.name.Store(&name) }

func (h *bar) extend(more int) {
	h.total += more
	h.SetTotal(int64(h.total), false)
}

func (h *bar) finished(n shards.Number, err error, d time.Duration) {
	h.pace.add(n, d)
	text := h.pace.short(h.total)
	h.rest.Store(&text)
	if err != nil {
		h.failed.Add(1)
	}
	h.Increment()
}

func (b *bars) Finished(host string, n shards.Number, err error, d time.Duration) {
	b.byHost[host].finished(n, err, d)
	if b.all != nil {
		b.all.finished(n, err, d)
	}
}

func (b *bars) End() {
	for _, h := range b.byHost {
		h.end()
	}
	if b.all != nil {
		b.all.end()
	}
	b.container.Wait()
}

// end leaves the bar as it is, full or not.
func (h *bar) end() {
	if h.pace.finished == h.total {
		h.SetTotal(-1, true)
	} else {
		h.Abort(false)
	}
}
