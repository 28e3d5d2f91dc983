package moves

import (
	"fmt"
	"io"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// copyingEvery is how often it is said how far the copy of a shard is, unless each step is.
const copyingEvery = 10 * time.Second

// teller says on standard error how moves go on: for each shard what holds it up, and how its move ended; or each step.
type teller struct {
	app     *cli.App
	out     io.Writer
	verbose bool
	total   int // moves of this command; 0 if that is not known
	ended   int
	began   time.Time
	shards  map[shards.Number]*told
}

// told is what is known of one shard's move.
type told struct {
	began, copying time.Time
	held           string // for how long writers waited
}

func newTeller(a *cli.App, cfg move.RunConfig, verbose bool) *teller {
	t := &teller{app: a, out: a.Unhindered(), verbose: verbose, began: time.Now(), shards: map[shards.Number]*told{}}
	for n := range cfg.Shards.All() {
		to := cfg.To
		if target, ok := cfg.Targets[n]; ok {
			to = target
		}
		if to != "" && cfg.Map.Host(n).Name != to {
			t.total++
		}
	}
	return t
}

// event takes what happens in a move. It is called by one goroutine at a time.
func (t *teller) event(e progress.Event) {
	what, of := cli.Clean(e.What), t.shards[e.Shard]
	if of == nil {
		of = &told{began: time.Now(), copying: time.Now()}
		t.shards[e.Shard] = of
	}
	if e.Bytes > 0 {
		what = fmt.Sprintf("%s %s of %s", what, cli.Megabytes(e.Bytes), cli.Megabytes(e.Total))
		if e.Left > 0 {
			what += fmt.Sprintf(", %s left", e.Left)
		}
	}
	who := fmt.Sprintf("shard %d", e.Shard)
	if e.Split.Len() > 0 {
		who = "shards " + t.app.ShortSet(e.Split)
	}
	if e.Kind == progress.Released {
		of.held = ", writers waited " + short(e.Waited)
	}
	if t.verbose {
		fmt.Fprintf(t.out, "%s, %s: %s\n", who, e.Step, what)
	}
	switch {
	case e.Kind == progress.Done:
		t.ended++
		fmt.Fprintf(t.out, "%s moved to %s in %s%s%s\n", who, e.To, short(time.Since(of.began)), of.held, t.left())
	case e.Kind == progress.Aborted:
		fmt.Fprintf(t.out, "%s stays on %s\n", who, e.From)
	case t.verbose:
	case e.Bytes > 0:
		if time.Since(of.copying) >= copyingEvery {
			of.copying = time.Now()
			fmt.Fprintf(t.out, "%s: %s\n", who, what)
		}
	case holdsUp(e.Kind):
		fmt.Fprintf(t.out, "%s: %s\n", who, what)
	}
}

// holdsUp reports whether an event is more than a step that a move goes through.
func holdsUp(kind progress.Kind) bool {
	switch kind {
	case progress.Note, progress.Waiting, progress.Retrying, progress.Recomparing, progress.WayBack, progress.TooLarge:
		return true
	}
	return false
}

// short returns a duration with the digits that matter.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if d > unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.Round(time.Microsecond).String()
}

// left says how many moves have ended, and how long the rest will take at the speed so far.
func (t *teller) left() string {
	if t.total < 2 {
		return ""
	}
	text := fmt.Sprintf(" (%s of %s", cli.Thousands(t.ended), cli.Thousands(t.total))
	if rest := time.Duration(float64(time.Since(t.began)) / float64(t.ended) * float64(t.total-t.ended)); rest > 0 {
		text += ", " + rest.Round(time.Second).String() + " left"
	}
	return text + ")"
}
