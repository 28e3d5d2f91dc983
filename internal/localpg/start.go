package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// ErrUnavailable is in the error of Start when the machine has nothing to run Postgres with, or nothing of the source
// that was asked for. It is not in the error when Postgres was there and could not be started.
var ErrUnavailable = errors.New("no Postgres available")

// Start starts a server, or finds the one that cfg.DSN names, and returns when it answers. Of several sources the first
// that is available is taken, as the package comment says; once there is one, its failure is final.
//
// ctx governs the start only; downloads and pulls of images included. Beside it, a server has five minutes to answer,
// as long as it runs. After an error nothing of the server is left. If the server gave up by itself, the error ends with
// the last lines of its log. No error has a password in it.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	source := cfg.Source
	if source == "" && cfg.DSN != "" {
		source = DSN
	}
	if source != "" {
		s, err := startFrom(ctx, cfg, source)
		if err != nil {
			return nil, fmt.Errorf("start Postgres (source %s): %w", source, err)
		}
		return s, nil
	}

	var tried unavailable
	for _, source := range []Source{Local, Docker, Download} {
		s, err := startFrom(ctx, cfg, source)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil || !errors.Is(err, ErrUnavailable):
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
		e       engine
		version string
		err     error
	)
	switch source {
	case DSN:
		e, version, err = startExternal(ctx, cfg)
	case Local:
		e, version, err = startLocal(ctx, cfg)
	case Docker:
		e, version, err = startDocker(ctx, cfg)
	case Download:
		e, version, err = startDownload(ctx, cfg)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{source: source, version: version, keep: cfg.Keep, logger: cfg.Logger, engine: e, running: true}
	cfg.Logger.DebugContext(ctx, "postgres started", slog.String("server", s.Describe()))
	return s, nil
}

// notHere marks err as one that says that something is missing on the machine.
func notHere(err error) error { return unavailable{err} }

// unavailable is what was tried in vain.
type unavailable []error

func (u unavailable) Error() string {
	if len(u) == 1 {
		return oneLine(u[0])
	}
	var tried []string
	for _, err := range u {
		tried = append(tried, oneLine(err))
	}
	return ErrUnavailable.Error() + ": " + strings.Join(tried, ", ") +
		"; install Debian's postgresql package, or Docker, or set KILOSHARD_POSTGRES_DSN"
}

func (u unavailable) Unwrap() []error { return append([]error{ErrUnavailable}, u...) }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
