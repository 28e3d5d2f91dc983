// Package golden holds the JSON of commands in files, so that a change of a field shows in a diff.
package golden

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write the files of testdata instead of comparing them")

// JSON compares what print prints with -o json with the file testdata/NAME.json.
func JSON(t *testing.T, name string, print func(*cli.App) error) {
	t.Helper()
	var out bytes.Buffer
	a := cli.New(nil, &out, io.Discard, nil)
	a.Output, a.Quiet = cli.JSON, true
	if err := print(a); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("%s: got\n%s\nexpected\n%s", name, out.String(), want)
	}
}
