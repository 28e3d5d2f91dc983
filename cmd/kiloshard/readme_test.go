package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// readmeProgram makes a program of the README's snippets of Go, each in a function of its own, in the README's order. Its
// main runs the first, the smallest program, as the README has it.
const readmeProgram = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func main() {
	if err := smallest(context.Background(), 31341, "sunset"); err != nil {
		log.Fatal(err)
	}
}

func smallest(ctx context.Context, user int64, title string) error {
	var id shards.ID
	%s
	if err != nil {
		return err
	}
	fmt.Println("photo of user", user, "is in", shard)
	return nil
}

func follows(ctx context.Context) error {
	%s
	if err == nil {
		r.Close()
	}
	return err
}

func seen(ctx context.Context, source *mapstore.Source, mux *http.ServeMux) error {
	%s
	return err
}

func leases(ctx context.Context, shard router.Shard, children []string) ([]shards.ID, error) {
	%s
	return made, err
}
`

// readmeService is the README's test of a service; what it leaves out is filled in.
const readmeService = `package service

import (
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

%s
`

const readmeFilledIn = `if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	shard, err := r.ForKey(t.Context(), shards.NumberKey(31341))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shard.Exec(t.Context(), "insert into photos (user_id, title) values (31341, 'sunset')"); err != nil {
		t.Fatal(err)
	}`

const readmeMigration = "create table photos (id bigint primary key default next_id(), user_id bigint not null, title text not null);\n"

// TestReadme does as the README says: it has a cluster by the commands, a program of the smallest program, and the test of
// a service. All other snippets are compiled.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var snippets []any
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		snippets = append(snippets, m[1])
	}
	if len(snippets) != 5 {
		t.Fatalf("%d snippets of Go, expected 5: give a new one its place here", len(snippets))
	}
	test := strings.ReplaceAll(snippets[4].(string), "…", readmeFilledIn)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The files are seen by the compiler only, as packages of this module.
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(here, "testdata/readme/main.go"):                 write("main.txt", fmt.Sprintf(readmeProgram, snippets[:4]...)),
		filepath.Join(here, "testdata/readme/service/service_test.go"): write("test.txt", fmt.Sprintf(readmeService, test)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	files := write("overlay.json", string(overlay))
	program, tests := filepath.Join(dir, "program"), filepath.Join(dir, "service", "tests")
	write("service/none", "")
	run := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), "PG_A_PASSWORD=unused", "PG_B_PASSWORD=unused")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run(here, "go", "build", "-overlay", files, "-o", program, "./testdata/readme")
	run(here, "go", "test", "-c", "-vet=off", "-overlay", files, "-o", tests, "./testdata/readme/service")

	// As a new user: a config whose hosts are edited, shards, a migration, and the program.
	run(dir, "kiloshard", "init")
	config, err := os.ReadFile(filepath.Join(dir, "kiloshard.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	edited := string(config)
	for i, host := range shardtest.Hosts(t, 2) {
		dsn := regexp.MustCompile(`(?m)(name: pg-` + string("ab"[i]) + `, dsn: )"[^"]*"`)
		edited = dsn.ReplaceAllString(edited, `${1}"`+host.ConnString()+`"`)
	}
	write("kiloshard.yaml", edited)
	run(dir, "kiloshard", "create")
	write("migrations/001_photos.sql", readmeMigration)
	run(dir, "kiloshard", "migrate", "up")
	run(dir, "kiloshard", "verify")
	if out := run(dir, program); !strings.Contains(out, "photo of user 31341 is in shard") {
		t.Errorf("the smallest program printed %q", out)
	}
	run(filepath.Join(dir, "service"), tests)
}
