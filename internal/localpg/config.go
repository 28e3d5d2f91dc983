package localpg

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// Source says where a server comes from.
type Source = string

// The sources, in the order in which they are tried.
const (
	DSN      = "dsn"      // a server that the caller has
	Local    = "local"    // server binaries on this machine
	Docker   = "docker"   // a container
	Download = "download" // a downloaded build
)

// MinVersion is the oldest major version of Postgres that is used.
const MinVersion = 15

// Config says which server to start. Package shards/localpg documents its fields.
type Config struct {
	Source      Source
	DSN         string
	Settings    map[string]string
	Keep        bool
	Dir         string
	BinDir      string
	Env         []string
	Image       string
	DownloadURL string
	CacheDir    string
	Logger      *slog.Logger
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
