//go:build !unix

package localpg

import (
	"context"
	"errors"
	"runtime"
)

var errNoLocal = errors.New("servers from binaries are not supported on " + runtime.GOOS)

func startLocal(context.Context, Config) (engine, string, error) { return nil, "", notHere(errNoLocal) }

func startDownload(context.Context, Config) (engine, string, error) {
	return nil, "", notHere(errNoLocal)
}

func startPgBouncer(context.Context, PgBouncerConfig) (*PgBouncer, error) {
	return nil, notHere(errNoLocal)
}
