package localpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// external is a server that the caller has.
type external struct {
	connStr connString
	config  *pgx.ConnConfig
}

func startExternal(ctx context.Context, cfg Config) (engine, string, error) {
	c, config, err := parseDSN(cfg.DSN)
	if err != nil {
		return nil, "", err
	}
	version, err := c.askVersion(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("DSN: %w", err)
	}
	text, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(text); err == nil && major < MinVersion {
		return nil, "", fmt.Errorf("DSN: the server is of version %s, too old: want %d or later", version, MinVersion)
	}
	return &external{c, config}, version, nil
}

func (e *external) describe() (origin, place string) {
	return "given by its DSN", net.JoinHostPort(e.config.Host, strconv.Itoa(int(e.config.Port)))
}

var errNotOurs = fmt.Errorf("the server came by its DSN and is not ours: %w", errors.ErrUnsupported)

func (e *external) conn() connString               { return e.connStr }
func (e *external) pid() int                       { return 0 }
func (e *external) dataDir() string                { return "" }
func (e *external) log(context.Context) string     { return "" }
func (e *external) start(context.Context) error    { return errNotOurs }
func (e *external) kill(context.Context) error     { return errNotOurs }
func (e *external) shutdown(context.Context) error { return nil }
func (e *external) remove(context.Context) error   { return nil }
func (e *external) detach()                        {}
