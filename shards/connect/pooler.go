package connect

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPooler says that a pooler, such as PgBouncer, refuses the settings that a session of [Open] or [OpenPlain] states.
var ErrPooler = errors.New("a pooler refuses the settings of the session")

// throughPooler is the advice for a DSN that leads to a pooler.
const throughPooler = "a pooler such as PgBouncer is at this address, and commands need the server itself: expected the server's DSN as the host's direct, " +
	"beside its dsn with the pooler's address"

// refusedParameter matches PgBouncer's text about a parameter that it does not know.
var refusedParameter = regexp.MustCompile(`(unsupported startup parameter)(?: in options)?: \S+`)

// isPooler reports whether a pooler refused the settings of a session. Postgres knows all of them.
func isPooler(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "08P01" && strings.HasPrefix(pg.Message, "unsupported startup parameter")
}
