package pgbouncer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/settings"
)

// ini returns the configuration file.
func ini(server *pgx.ConnConfig, callers map[string]string, port int, users string) (string, error) {
	merged, err := settings.Merge(map[string]string{
		"pool_mode":         "transaction",
		"max_client_conn":   "1000",
		"default_pool_size": "16",
		"log_connections":   "0", "log_disconnections": "0",
	}, callers, []string{
		"auth_file", "auth_type", "listen_addr", "listen_port", "logfile", "pidfile", "unix_socket_dir", "user",
	}, "setting")
	if err != nil {
		return "", err
	}
	// The file of users contains plain passwords: PgBouncer needs them to log in to the server.
	merged["auth_type"], merged["auth_file"] = "scram-sha-256", users
	merged["listen_addr"], merged["listen_port"], merged["unix_socket_dir"] = "127.0.0.1", fmt.Sprint(port), ""
	var text strings.Builder
	quoted := strings.ReplaceAll(server.Host, "'", "''")
	fmt.Fprintf(&text, "[databases]\n* = host='%s' port=%d\n[pgbouncer]\n", quoted, server.Port)
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		fmt.Fprintf(&text, "%s = %s\n", name, merged[name])
	}
	return text.String(), nil
}

// userList returns the file of users.
func userList(server *pgx.ConnConfig) string {
	quote := strings.NewReplacer(`"`, `""`)
	return fmt.Sprintf("\"%s\" \"%s\"\n", quote.Replace(server.User), quote.Replace(server.Password))
}
