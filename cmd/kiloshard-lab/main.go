// Command kiloshard-lab shows and measures Kiloshard on throw-away servers: the demo and the benchmarks.
package main

import (
	"github.com/kiloshard/kiloshard/cmd/internal/lab"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
)

func main() { program.Main(lab.Root) }
