package localpg

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// Source says where a server comes from.
type Source string

// The sources, in the order in which they are tried.
const (
	DSN      Source = "dsn"      // a server that the caller has
	Local    Source = "local"    // server binaries on this machine
	Docker   Source = "docker"   // a container
	Download Source = "download" // a downloaded build
)

// MinVersion is the oldest major version of Postgres that is used.
const MinVersion = 15

// Config says which server to start. Its zero value starts whichever is available, with settings fit for throwing away.
type Config struct {
	// Source is the only source to try. Defaults to DSN if one is given, else to the first of Local, Docker and
	// Download that is available.
	Source Source

	// DSN is a server that the caller has, as a URL or as keywords and values. Its user must be allowed to create
	// databases.
	DSN string

	// Settings are server settings as in postgresql.conf, over those of this package: max_connections 200,
	// shared_buffers 256MB, min_wal_size 80MB, max_wal_size 512MB. Not with a DSN.
	Settings map[string]string

	// Keep leaves the server running and its files in place on Stop, and does not tie it to this process's life.
	// Databases created on a server given by its DSN are left, too.
	Keep bool

	// Dir is the parent of the data directory; the user that the server runs as must be able to enter it. Defaults to
	// /dev/shm, in memory, for a server that has fsync off, is not kept, and finds 8 GiB free there; else to os.TempDir,
	// and for Docker to a volume. For Docker only root can use it, and the daemon must be on this machine.
	Dir string

	// BinDir is the only place to look for server binaries. Defaults to the PATH and the usual places. For Local.
	BinDir string

	// Env is added to the environment of the server process, which is otherwise only LC_ALL=C; in the form of
	// os.Environ. For Local and Download.
	Env []string

	// Image is the container image. Defaults to postgres:17.
	Image string

	// DownloadURL is the Maven repository that builds are downloaded from. Defaults to that of
	// embedded-postgres.
	DownloadURL string

	// CacheDir is where downloaded builds and templates of initdb are kept. Defaults to kiloshard in os.UserCacheDir;
	// for root, whose cache the server's user cannot reach, to /var/cache/kiloshard.
	CacheDir string

	// Logger gets what is tried and what is started. Defaults to none.
	Logger *slog.Logger
}

const defaultImage = "postgres:17"

var (
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

	// ours are the settings that this package gives on the server's command line.
	ours = []string{
		"config_file", "data_directory", "dynamic_shared_memory_type", "external_pid_file", "hba_file", "ident_file", "listen_addresses",
		"logging_collector", "port", "unix_socket_directories",
	}
)

// withDefaults returns cfg with its empty fields filled in, or what is wrong with it.
func (cfg Config) withDefaults() (Config, error) {
	switch cfg.Source {
	case "", Local, Docker, Download:
	case DSN:
		if cfg.DSN == "" {
			return cfg, fmt.Errorf("source %q: no DSN given", cfg.Source)
		}
	default:
		return cfg, fmt.Errorf("source %q: want %q, %q, %q, %q or none", cfg.Source, DSN, Local, Docker, Download)
	}
	for name, value := range cfg.Settings {
		switch {
		case !settingName.MatchString(name):
			return cfg, fmt.Errorf("setting %q: not the name of a server setting", name)
		case slices.Contains(ours, strings.ToLower(name)):
			return cfg, fmt.Errorf("setting %s: chosen by localpg", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			return cfg, fmt.Errorf("setting %s: the value has more than one line", name)
		}
	}

	settings := map[string]string{
		"max_connections": "200",
		"shared_buffers":  "256MB",
		"min_wal_size":    "80MB",
		"max_wal_size":    "512MB",
	}
	for name, value := range cfg.Settings {
		settings[strings.ToLower(name)] = value
	}
	cfg.Settings = settings
	if cfg.Image == "" {
		cfg.Image = defaultImage
	}
	cfg.Env = append([]string{"LC_ALL=C"}, cfg.Env...)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg, nil
}
