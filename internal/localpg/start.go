package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/docker"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
)

// ErrUnavailable is in the error of Start if this machine has nothing to run Postgres with, or nothing from the source that
// the caller names. It is not in the error if Postgres is there and does not start.
var ErrUnavailable = engine.ErrUnavailable

// Start starts a server, or finds the one that cfg.DSN names, and returns when it answers. It takes the first source that is
// available, as the package comment says. If that fails, Start tries no other source.
//
// ctx governs the start only, including downloads and pulls of images. In addition, a server that runs has five minutes to
// answer. After an error nothing of the server is left. If the server ended by itself, the error ends with
// the last lines of its log. No error contains a password.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	sources := []Source{Local, Docker, Download}
	if cfg.Source != "" {
		sources = []Source{cfg.Source}
	} else if cfg.DSN != "" {
		sources = []Source{DSN}
	}
	var tried engine.UnavailableErrors
	for _, source := range sources {
		s, err := startFrom(ctx, cfg, source)
		switch {
		case err == nil:
			return s, nil
		case len(sources) == 1 || ctx.Err() != nil || !errors.Is(err, ErrUnavailable):
			return nil, fmt.Errorf("start Postgres (source %s): %w", source, err)
		}
		cfg.Logger.DebugContext(ctx, "postgres source unavailable",
			slog.String("source", source), slog.Any("error", err))
		tried = append(tried, err)
	}
	return nil, tried
}

func startFrom(ctx context.Context, cfg Config, source Source) (*Server, error) {
	var (
		e       engine.Engine
		version string
		err     error
	)
	switch source {
	case DSN:
		e, version, err = startExternal(ctx, cfg.DSN)
	case Docker:
		e, version, err = docker.Run(ctx, docker.Config{
			Image: cfg.Image, Settings: cfg.Settings, Keep: cfg.Keep, Dir: cfg.Dir, Logger: cfg.Logger,
		})
	default:
		e, version, err = startLocal(ctx, cfg, source)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{source: source, version: version, keep: cfg.Keep, logger: cfg.Logger, engine: e, running: true}
	cfg.Logger.DebugContext(ctx, "postgres started", slog.String("server", s.Describe()))
	return s, nil
}
