package cli

import (
	"golang.org/x/term"

	"github.com/kiloshard/kiloshard/cmd/internal/progress"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// --parallel is the same for all commands that work on shards.
const (
	DefaultParallel = 4
	ParallelUsage   = "shards, or batches of shards, of each host at a time"
)

// Progress shows on standard error how work on shards goes on.
func (a *App) Progress(doing string) fanout.Progress {
	if a.Quiet {
		return nil
	}
	if file, ok := FileOf(a.Stderr); ok && term.IsTerminal(int(file.Fd())) {
		return progress.Bars(doing, file)
	}
	return progress.Lines(doing, a.Stderr)
}
