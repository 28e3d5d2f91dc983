// Command kiloshard shards Postgres by schema: it creates shards, migrates them, routes keys to
// them, makes their IDs and takes them apart. kiloshard help lists what it does.
package main

import (
	"os"
)

func main() {
	ctx, stop := signals(os.Stderr)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
