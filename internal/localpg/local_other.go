//go:build !unix

package localpg

import (
	"context"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
)

func startLocal(context.Context, Config, Source) (engine.Engine, string, error) {
	return nil, "", engine.NoBinaries()
}
