package login

import (
	"crypto/rand"

	"github.com/kiloshard/kiloshard/internal/scram"
)

// NewPassword returns a random password in ASCII, of 128 bits or more.
func NewPassword() string { return rand.Text() }

// Verifier returns what Postgres stores for such a password, with one iteration. Iterations slow down guessing, and nobody can
// guess 128 random bits. They would take most of the time of a login.
func Verifier(password string) string { return scram.Verifier(password, 1) }
