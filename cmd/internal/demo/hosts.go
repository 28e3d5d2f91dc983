package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
)

// Hosts are the hosts of the demo.
type Hosts struct {
	names   []string
	servers []*localpg.Server
	DSNs    map[string]string // by environment variable
}

// startHosts starts two servers, each with a database, and stops what it started when it fails.
func startHosts(ctx context.Context, keep bool) (*Hosts, error) {
	h := &Hosts{names: []string{"pg-a", "pg-b"}, servers: make([]*localpg.Server, 2), DSNs: map[string]string{}}
	cfg := throwaway.LocalConfig()
	cfg.Keep = keep
	if cfg.DSN == "" {
		cfg.Settings = map[string]string{"fsync": "off", "shared_buffers": "32MB"} // nothing here outlives the demo
	}
	errs := make([]error, len(h.servers))
	var wg sync.WaitGroup
	for i := range h.servers {
		wg.Go(func() { h.servers[i], errs[i] = localpg.Start(ctx, cfg) })
	}
	wg.Wait()
	if err := errs[0]; err != nil { // both fail alike
		return nil, errors.Join(err, h.stop(context.WithoutCancel(ctx)))
	}
	if err := errs[1]; err != nil {
		return nil, errors.Join(err, h.stop(context.WithoutCancel(ctx)))
	}
	for i, s := range h.servers {
		name := strings.ReplaceAll(h.names[i], "-", "_")
		dsn, err := s.CreateDatabase(ctx, fmt.Sprintf("kiloshard_demo_%d_%s", os.Getpid(), name))
		if err != nil {
			return nil, errors.Join(err, h.stop(context.WithoutCancel(ctx)))
		}
		h.DSNs[strings.ToUpper(name)+"_DSN"] = dsn
	}
	return h, nil
}

// lookup looks up the variables that the demo's config names.
func (h *Hosts) lookup(name string) (string, bool) {
	dsn, ok := h.DSNs[name]
	return dsn, ok
}

func (h *Hosts) stop(ctx context.Context) error {
	var errs []error
	for _, s := range h.servers {
		if s != nil {
			errs = append(errs, s.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// endCommand returns what ends kept hosts and removes their files.
func (h *Hosts) endCommand(dir string) string {
	var commands []string
	dirs := cli.ShellQuoted(dir)
	for i, s := range h.servers {
		if s.PID() == 0 {
			commands = append(commands, fmt.Sprintf("# end %s: %s", h.names[i], s.Describe()))
			continue
		}
		commands = append(commands, fmt.Sprintf("kill -INT %d", s.PID()))
		dirs += " " + cli.ShellQuoted(filepath.Dir(s.DataDir()))
	}
	return strings.Join(append(commands, "rm -r "+dirs), "; ")
}

// writeAccess writes two files for people who keep the demo's hosts: env, to be sourced by a shell,
// and pg_service.conf, by which psql finds a host without a password on its command line.
func (h *Hosts) writeAccess(dir string) error {
	services := filepath.Join(dir, "pg_service.conf")
	env := fmt.Sprintf("export PGSERVICEFILE=%s\n", cli.ShellQuoted(services))
	var conf strings.Builder
	for _, name := range h.names {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_DSN"
		cfg, err := pgx.ParseConfig(h.DSNs[variable])
		if err != nil {
			return err
		}
		fmt.Fprintf(&conf, "[%s]\nhost=%s\nport=%d\nuser=%s\npassword=%s\ndbname=%s\n\n", name, cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database)
		env += fmt.Sprintf("export %s=%s\n", variable, cli.ShellQuoted(h.DSNs[variable]))
	}
	return errors.Join(
		os.WriteFile(services, []byte(conf.String()), 0o600),
		os.WriteFile(filepath.Join(dir, "env"), []byte(env), 0o600),
	)
}
