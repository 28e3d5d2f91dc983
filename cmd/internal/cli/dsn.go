package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// checkDSNs returns the error for the first DSN of a map that no connection could be made with. In a map from a file it names
// the line.
func (a *App) checkDSNs(file shards.Config, m *shards.Map) error {
	for i, host := range m.Hosts() {
		if host.Direct != "" {
			commands := host.ForCommands()
			commands.Replicas = nil
			if _, err := connect.Check(commands); err != nil {
				return a.badDSN(file, fmt.Sprintf("hosts[%d].direct", i), err)
			}
		}
		replica, err := connect.Check(host)
		if err == nil {
			continue
		}
		field := fmt.Sprintf("hosts[%d].dsn", i)
		if replica >= 0 {
			field = fmt.Sprintf("hosts[%d].replicas[%d]", i, replica)
		}
		return a.badDSN(file, field, err)
	}
	return nil
}

// badDSN returns the error for the DSN of a field.
func (a *App) badDSN(file shards.Config, field string, err error) error {
	bad := &shards.FieldError{Field: field, Found: strings.TrimPrefix(err.Error(), "dsn: ")}
	if file.Remote() && field != "store.dsn" {
		bad.File = a.Where(file.Store)
		return bad
	}
	if text, read := os.ReadFile(a.ConfigFile); read == nil {
		return shards.Locate(a.ConfigFile, text, bad)
	}
	bad.File = a.ConfigFile
	return bad
}
