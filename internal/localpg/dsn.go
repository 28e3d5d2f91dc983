package localpg

import (
	"os"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// AsRole returns a DSN with another role, and its password.
func AsRole(text, role, password string) string {
	return dsn.With(text, "user", role, "password", password)
}

// IgnoreEnvironment unsets the PG* variables that change connections beside their DSN, since a developer may have set them for
// other servers. Call it before tests run.
func IgnoreEnvironment() {
	for _, name := range []string{
		"PGSERVICE", "PGSERVICEFILE", "PGTARGETSESSIONATTRS", "PGOPTIONS", "PGTZ", "PGAPPNAME", "PGCLIENTENCODING", "PGDATESTYLE",
		"PGSSLMODE", "PGSSLNEGOTIATION", "PGREQUIREAUTH", "PGCHANNELBINDING", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
	} {
		_ = os.Unsetenv(name) // it cannot fail for these names
	}
}
