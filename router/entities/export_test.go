package entities

import "time"

// SetStep sets a function that the store calls before each write that follows the write of an entity. After an error of the
// function the store writes nothing more.
func (s *Store) SetStep(step func(string) error) { s.step = step }

// SetGrace sets how long a writer owns its work.
func (s *Store) SetGrace(grace time.Duration) { s.grace = grace }
