package entities

import "time"

// SetStep has a function be called before each write of a store, behind that of an entity; after its error nothing more is
// written.
func (s *Store) SetStep(step func(string) error) { s.step = step }

// SetGrace says for how long the work of a writer is its own.
func (s *Store) SetGrace(grace time.Duration) { s.grace = grace }
