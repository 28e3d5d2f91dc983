package localpg

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/binaries"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

// external is a server that the caller has.
type external struct {
	dsn    login.DSN
	config *pgx.ConnConfig
}

func startExternal(ctx context.Context, text string) (engine.Engine, string, error) {
	d, config, err := login.Parse(text)
	if err != nil {
		return nil, "", err
	}
	version, err := d.Version(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("DSN: %w", err)
	}
	number, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(number); err == nil && major < binaries.MinVersion {
		return nil, "", fmt.Errorf("DSN: the server is of version %s, too old: want %d or later", version, binaries.MinVersion)
	}
	return &external{d, config}, version, nil
}

func (e *external) Describe() (origin, place string) {
	return "given by its DSN", net.JoinHostPort(e.config.Host, strconv.Itoa(int(e.config.Port)))
}

func (e *external) DSN() login.DSN                 { return e.dsn }
func (e *external) PID() int                       { return 0 }
func (e *external) DataDir() string                { return "" }
func (e *external) Log(context.Context) string     { return "" }
func (e *external) Start(context.Context) error    { return errNotOurs }
func (e *external) Kill(context.Context) error     { return errNotOurs }
func (e *external) Freeze(context.Context) error   { return errNotOurs }
func (e *external) Thaw(context.Context) error     { return errNotOurs }
func (e *external) Shutdown(context.Context) error { return nil }
func (e *external) Remove(context.Context) error   { return nil }
func (e *external) Detach()                        {}
