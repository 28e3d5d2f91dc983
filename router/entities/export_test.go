package entities

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// SetStep sets a function that the store calls before each write that follows the first one of a Put, Delete or repair. After
// an error of the function the store writes nothing more.
func (s *Store) SetStep(step func(string) error) { s.step = step }

// Lock adds the statement to a batch that takes the lock of an entity.
func Lock(b *pgx.Batch, id ID) { lock(b, id) }

// Walk is the walk of a cleaner.
type Walk = walk

// NewWalk returns a walk with passes of one second.
func (s *Store) NewWalk(perSecond int) *Walk {
	return newWalk(s, newPace(CleanOptions{WalkPerSecond: perSecond}))
}

// Step does what a cleaner does in one pass.
func (w *walk) Step(ctx context.Context) error { return w.step(ctx) }

// FailOver makes the walk find that all hosts have new timelines.
func (w *walk) FailOver() {
	for host := range w.timelines {
		w.timelines[host] = "an older one"
	}
}
