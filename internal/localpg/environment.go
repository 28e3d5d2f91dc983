package localpg

import "os"

// IgnoreEnvironment takes variables out of the environment that would change what all connections of a test are, whatever their DSN says:
// a developer may have them for servers of their own. It is called before tests run.
func IgnoreEnvironment() {
	for _, name := range []string{
		"PGSERVICE", "PGSERVICEFILE", "PGTARGETSESSIONATTRS", "PGOPTIONS", "PGTZ", "PGAPPNAME", "PGCLIENTENCODING", "PGDATESTYLE",
		"PGSSLMODE", "PGSSLNEGOTIATION", "PGREQUIREAUTH", "PGCHANNELBINDING", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
	} {
		_ = os.Unsetenv(name) // it fails for no name of these
	}
}
