package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// topicsService makes a service of the snippets of help topics, and has users of it.
const topicsService = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

%s

%s

func follows(ctx context.Context) (*mapstore.Source, *router.Router, error) {
	%s
	return source, r, err
}

func seen(ctx context.Context, source *mapstore.Source, mux *http.ServeMux) (*router.Router, error) {
	%s
	return r, err
}

func leases(ctx context.Context, shard router.Shard, children []string) ([]shards.ID, error) {
	%s
	return made, err
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	source, r, err := follows(ctx)
	must(r, err)
	defer r.Close()
	var photos []shards.ID
	for i := range 20 {
		email := fmt.Sprintf("user-%%d@example.org", i)
		user := must(signUp(ctx, r, email))
		if again, err := signUp(ctx, r, email); err == nil {
			log.Fatalf("%%s signed up twice: %%d and %%d", email, user, again)
		}
		if found := must(logIn(ctx, r, email)); found != user {
			log.Fatalf("%%s is user %%d, expected %%d", email, found, user)
		}
		photos = append(photos, must(post(ctx, r, user, "photo of "+email)))
	}
	if _, err := logIn(ctx, r, "nobody@example.org"); !errors.Is(err, shards.ErrNoShard) {
		log.Fatalf("nobody logged in: %%v", err)
	}
	if found := must(titles(ctx, r, photos)); len(found) != 20 || found[7] != "photo of user-7@example.org" {
		log.Fatalf("found %%q", found)
	}
	if users := must(count(ctx, r)); users != 20 {
		log.Fatalf("%%d users, expected 20", users)
	}
	mux := http.NewServeMux()
	watched := must(seen(ctx, source, mux))
	defer watched.Close()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		answer := httptest.NewRecorder()
		if mux.ServeHTTP(answer, httptest.NewRequest("GET", path, nil)); answer.Code != 200 {
			log.Fatalf("%%s: %%d %%s", path, answer.Code, answer.Body)
		}
	}
	if made := must(leases(ctx, must(watched.ForShard(3)), []string{"a", "b"})); len(made) != 3 {
		log.Fatalf("made %%v", made)
	}
	fmt.Println("all is well")
}
`

// TestTopicsService has users of a service that is made of the snippets of help topics, under a role that got its rights by their
// commands.
func TestTopicsService(t *testing.T) {
	t.Parallel()
	p, n := topic(t, "sign-up"), newNewcomer(t)
	n.types("kiloshard init")
	hosts := shardtest.Hosts(t, 2)
	n.editsHosts(hosts)
	small := regexp.MustCompile(`(?m)^strategy: .*\n`).ReplaceAllLiteralString(readPage(t, n.dir+"/kiloshard.yaml"), p["yaml"][0])
	n.writes("kiloshard.yaml", strings.NewReplacer("shards: 640", "shards: 16", "shards: 0-621,", "shards: 0-7,", "shards: 622-639,", "shards: 8-15,").Replace(small))
	n.writes("migrations/001_users.sql", p["sql"][0])
	n.types("kiloshard create")
	n.types("kiloshard migrate up")

	role := fmt.Sprintf("topics_%d", os.Getpid())
	n.types("kiloshard exec \"do 'begin create role " + role + " login password ''secret''; exception when duplicate_object then null; end'\" --shards 0")
	for line := range strings.Lines(p["sh"][0]) {
		n.types(strings.Replace(strings.TrimSpace(line), "photos_service", role, 1))
	}
	owner := n.env
	n.env = append(slices.Clone(n.env), "PG_a_DSN="+localpg.AsRole(hosts[0].ConnString(), role, "secret"), "PG_b_DSN="+localpg.AsRole(hosts[1].ConnString(), role, "secret"))
	router := topic(t, "router")["go"]
	n.writes("main.go", fmt.Sprintf(topicsService, p["go"][0], router[1], strings.ReplaceAll(router[0], "/var/lib/app/map.yaml", n.dir+"/map.yaml"),
		topic(t, "monitoring")["go"][0], topic(t, "generators")["go"][0]))
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	n.types("go mod init photos && go work init . " + root + "/../..")
	if out := n.types("go run ."); !strings.Contains(out, "all is well") {
		t.Errorf("the service printed %q", out)
	}
	n.env = owner
	n.types("kiloshard grant " + role + " --revoke")
	n.types("kiloshard verify")
	n.types("kiloshard exec 'drop owned by " + role + "' --shards 0,8")
	n.types("kiloshard exec 'drop role " + role + "' --shards 0")
}

// TestTopicsConfigs reads what the topics say of kiloshard.yaml: each field alone, within a config that has the rest.
func TestTopicsConfigs(t *testing.T) {
	t.Parallel()
	fields := 0
	for _, topic := range help.All() {
		for _, block := range blocks(topic.Markdown)["yaml"] {
			for _, field := range regexp.MustCompile(`(?m)^\S.*\n( .*\n)*`).FindAllString(block, -1) {
				base := "cluster: photos\nshards: 2048\nepoch: 2026-01-01T00:00:00Z\n" +
					"hosts:\n  - {name: pg-a, dsn: \"host=10.0.0.1\"}\n  - {name: pg-b, dsn: \"host=10.0.0.2\"}\n" +
					"placement:\n  - {shards: 0-1023, host: pg-a}\n  - {shards: 1024-2047, host: pg-b}\n"
				if strings.HasPrefix(field, "store:") && !strings.Contains(field, "{kind: file}") {
					base = "cluster: photos\n"
				}
				lookup := func(string) (string, bool) { return "secret", true }
				if _, err := shards.Parse(topic.Name+".md", []byte(base+field), lookup); err != nil {
					t.Errorf("%s: %v", field, err)
				}
				fields++
			}
		}
	}
	if fields < 12 {
		t.Errorf("%d fields were read, expected more", fields)
	}
}
