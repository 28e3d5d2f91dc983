// Command kiloshard shards Postgres by schema: it creates shards, migrates them, routes keys to
// them, makes their IDs and takes them apart. kiloshard help lists what it does.
package main

import "github.com/kiloshard/kiloshard/cmd/internal/program"

func main() { program.Main(program.Kiloshard) }
