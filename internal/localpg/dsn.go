package localpg

import (
	"os"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// AsRole returns a DSN with another role, and its password.
func AsRole(text, role, password string) string {
	return dsn.With(text, "user", role, "password", password)
}

// IgnoreEnvironment removes variables from the environment that change all connections of a test, whatever their DSN says: a
// developer may have them for other servers. Call it before tests run.
func IgnoreEnvironment() {
	for _, name := range []string{
		"PGSERVICE", "PGSERVICEFILE", "PGTARGETSESSIONATTRS", "PGOPTIONS", "PGTZ", "PGAPPNAME", "PGCLIENTENCODING", "PGDATESTYLE",
		"PGSSLMODE", "PGSSLNEGOTIATION", "PGREQUIREAUTH", "PGCHANNELBINDING", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
	} {
		_ = os.Unsetenv(name) // it cannot fail for these names
	}
}
