package localpg

import (
	"fmt"
	"log/slog"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/settings"
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

// withDefaults returns cfg with its empty fields filled in, or an error that says what is wrong with it.
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
	var err error
	if cfg.Settings, err = serverSettings(cfg.Settings); err != nil {
		return cfg, err
	}
	if cfg.Image == "" {
		cfg.Image = "postgres:17"
	}
	cfg.Env = append([]string{"LC_ALL=C"}, cfg.Env...)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg, nil
}

// serverSettings returns the defaults with a caller's settings over them, or an error that says which one cannot be set.
func serverSettings(callers map[string]string) (map[string]string, error) {
	return settings.Merge(map[string]string{
		"max_connections": "200",
		"shared_buffers":  "256MB",
		"min_wal_size":    "80MB",
		"max_wal_size":    "512MB",
	}, callers, []string{ // on the server's command line, or fixed by initdb
		"config_file", "data_directory", "dynamic_shared_memory_type", "external_pid_file", "hba_file", "ident_file", "listen_addresses",
		"logging_collector", "port", "unix_socket_directories",
	}, "server setting")
}
