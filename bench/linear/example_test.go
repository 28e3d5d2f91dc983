package linear_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kiloshard/kiloshard/bench/linear"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// Fifty clients change one file, by one store.
func ExampleRun() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "linear-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := mapstore.Open(ctx, shards.Config{Cluster: "photos"}, mapstore.Options{Path: filepath.Join(dir, "kiloshard.yaml")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	report, err := linear.Run(ctx, linear.Config{Stores: []mapstore.Store{store}, Cluster: "photos", Operations: 200})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Verdict, report.Wrong)
	// Output: linearizable []
}
