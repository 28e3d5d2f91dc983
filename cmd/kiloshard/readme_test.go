package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// newcomer is a directory in which somebody types what the pages say.
type newcomer struct {
	t   *testing.T
	dir string   // where the last line has left its shell
	env []string // beside the environment
}

func newNewcomer(t *testing.T) *newcomer {
	return &newcomer{t: t, dir: t.TempDir(), env: []string{
		"PG_A_PASSWORD=unused", "PG_B_PASSWORD=unused", "GOFLAGS=" + os.Getenv("GOFLAGS") + " -buildvcs=false", "GOWORK=",
	}}
}

// types runs one line in a shell, and returns what it prints.
func (n *newcomer) types(line string) string {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "sh", "-e", "-c", "unset KILOSHARD_CONFIG\n"+line+"\npwd >&3")
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), n.env...)
	read, write, err := os.Pipe()
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	cmd.ExtraFiles = []*os.File{write}
	out, err := cmd.CombinedOutput()
	_ = write.Close()
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	var dir string
	if _, err := fmt.Fscanln(read, &dir); err != nil {
		n.t.Fatal(err)
	}
	n.dir = dir
	return string(out)
}

func (n *newcomer) writes(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// editsHosts changes what kiloshard init wrote: the hosts are those of the test, with fewer shards. Shard 621 is that of user 31341
// here too.
func (n *newcomer) editsHosts(hosts []shards.Host) {
	n.t.Helper()
	config := readPage(n.t, filepath.Join(n.dir, "kiloshard.yaml"))
	config = regexp.MustCompile(`(?m)(name: pg-([ab]), dsn: )"[^"]*"`).ReplaceAllString(config, `${1}"$${PG_${2}_DSN}"`)
	n.env = append(n.env, "PG_a_DSN="+hosts[0].ConnString(), "PG_b_DSN="+hosts[1].ConnString())
	n.writes("kiloshard.yaml", strings.NewReplacer("shards: 2048", "shards: 640", "shards: 0-1023,", "shards: 0-621,", "shards: 1024-2047,", "shards: 622-639,").Replace(config))
}

// clones makes a clone of this repository as git clone does, with what is changed here and not committed yet.
func (n *newcomer) clones() {
	n.t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		n.t.Fatal(err)
	}
	git := "git -c safe.directory='*' -C " + root
	n.types("git -c safe.directory='*' clone --quiet --no-hardlinks " + root + " kiloshard")
	n.types(git + " ls-files -d | (cd kiloshard && xargs -r rm -f)")
	n.types("cd " + root + " && git -c safe.directory='*' ls-files -m -o --exclude-standard | while read -r f; do if [ -f \"$f\" ]; then echo \"$f\"; fi; done | tar -cf - -T - | tar -xf - -C " + n.dir + "/kiloshard; cd " + n.dir)
}

// TestReadme goes by the README alone, from a clone to a row in a shard, a test and a move, and then by the help topics, in the same
// cluster. It is spared some typing: the repository is cloned from here, kiloshard is the program that is tested, and the hosts
// are there.
func TestReadme(t *testing.T) {
	t.Parallel()
	p, n := readme(t), newNewcomer(t)
	hosts := shardtest.Hosts(t, 2)
	n.createsDatabase(hosts[0], p["sh"][1])
	for line := range strings.Lines(p["sh"][2] + p["sh"][3]) {
		line = regexp.MustCompile(` +#.*`).ReplaceAllString(strings.TrimSpace(line), "")
		switch {
		case strings.HasPrefix(line, "git clone "):
			n.clones()
		case strings.HasPrefix(line, "(cd kiloshard && go install ./cmd/kiloshard)"):
			n.types("(cd kiloshard && go list ./cmd/kiloshard)")
		case line == "go run .":
			n.writes("main.go", p["go"][0])
			n.writes("main_test.go", p["go"][1])
			if out := n.types(line); !strings.Contains(out, "of user 31341 is in shard 621 ") {
				t.Errorf("%s printed %q", line, out)
			}
		default:
			out := n.types(line)
			switch line {
			case "kiloshard init":
				n.editsHosts(hosts)
			case "kiloshard migrate new photos":
				n.writes("migrations/001_photos.sql", p["sql"][0])
			case "kiloshard verify":
				if !strings.Contains(out, "all as the map says") {
					t.Errorf("%s printed %q", line, out)
				}
			}
		}
	}
	if out := n.types("kiloshard route 31341 && kiloshard exec 'select title from photos' --shards 621"); !strings.Contains(out, "shard_00621 on pg-b") || !strings.Contains(out, "sunset") {
		t.Errorf("after the move: %s", out)
	}
	n.followsTopics(hosts[0])
}

// createsDatabase runs createdb as the README does, where it is installed, under another name, and checks that the database is fit for
// a host.
func (n *newcomer) createsDatabase(host shards.Host, script string) {
	n.t.Helper()
	line := regexp.MustCompile(`(?m)^createdb .* photos_a$`).FindString(script)
	if line == "" {
		n.t.Fatalf("the README makes the databases by %q, expected createdb", script)
	}
	if _, err := exec.LookPath("createdb"); err != nil {
		n.t.Log("createdb is not installed, so it was not tried")
		return
	}
	cfg, err := pgx.ParseConfig(host.ConnString())
	if err != nil {
		n.t.Fatal(err)
	}
	name := fmt.Sprintf("photos_a_%d", os.Getpid())
	n.env = append(n.env, "PGHOST="+cfg.Host, fmt.Sprintf("PGPORT=%d", cfg.Port), "PGUSER="+cfg.User, "PGPASSWORD="+cfg.Password, "PGDATABASE="+cfg.Database, "PGSSLMODE=disable")
	n.types(strings.Replace(line, "photos_a", name, 1))
	if out := n.types("psql -X -At -d " + name + " -c 'show server_encoding'; dropdb " + name); out != "UTF8\n" {
		n.t.Errorf("%s made a database with the encoding %q", line, out)
	}
	n.env = n.env[:len(n.env)-6]
}

// followsTopics runs what help topics show, in the cluster that the README has made.
func (n *newcomer) followsTopics(host shards.Host) {
	t := n.t
	n.runsFunctions(host)

	n.writes("migrations/002_likes.sql", "create table likes (photo_id bigint primary key);\n")
	n.writes("smoke-test.sh", "#!/bin/sh\ntest -n \"$KILOSHARD_CANARY\"\n")
	n.types("chmod +x smoke-test.sh")
	if out := n.types(strings.TrimSpace(topic(t, "migrations")["sh"][0])); !strings.Contains(out, "640 shards at version 2 now") {
		t.Errorf("a canary printed %q", out)
	}
	for name, want := range map[string]string{"moves": "2 shards to be moved, 0 cannot be", "rollback": "1 shard to be moved, 0 cannot be"} {
		line := strings.Replace(strings.TrimSpace(topic(t, name)["sh"][0]), "7,100-120", "7,100", 1) // fewer, to save time
		if out := n.types(line + " --login-with-password --dry-run"); !strings.Contains(out, want) {
			t.Errorf("a move printed %q", out)
		}
	}
	n.env = append(n.env, `VISUAL=sed -i '/name: pg-b/s/weight: 1/weight: 1, closed: true/'`)
	n.writes("store.yaml", fmt.Sprintf("cluster: photos\nstore: {kind: postgres, dsn: %q, variables: [\"*\"]}\n", shardtest.Hosts(t, 1)[0].ConnString()))
	n.types("cp kiloshard.yaml file.yaml")
	for line := range strings.Lines(topic(t, "stores")["sh"][0]) {
		n.types(strings.Replace(strings.TrimSpace(line), "kiloshard map edit", "kiloshard -c file.yaml map edit", 1))
	}
	if out := n.types("kiloshard -c store.yaml map show"); !strings.Contains(out, "closed: true") {
		t.Errorf("the map that was edited and imported is %s", out)
	}

	// What a page shows that needs no cluster is the same to the letter.
	command, want, _ := strings.Cut(strings.TrimPrefix(topic(t, "layouts")[""][1], "$ "), "\n")
	if got := n.types(command); got != want {
		t.Errorf("%s prints\n%s\nexpected\n%s", command, got, want)
	}
}

// runsFunctions calls the functions of the topic on SQL, on a host that has shard 42.
func (n *newcomer) runsFunctions(host shards.Host) {
	n.t.Helper()
	n.types("kiloshard exec 'create sequence photos_id_seq maxvalue 1125899906842623' --shards 42")
	calls := []string{strings.TrimSpace(topic(n.t, "sql")["sql"][0])}
	for _, m := range regexp.MustCompile("(?m)^- ((?:`[^`]*`(?:, | and )?)+) returns?|^- (`[^`]*`) draws").FindAllStringSubmatch(readPage(n.t, "help/sql.md"), -1) {
		for _, span := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(m[1]+m[2], -1) {
			call := strings.NewReplacer("(id)", "(shard_00042.next_id())", "(n)", "(3)", "(t)", "(now())").Replace(span[1])
			if strings.Contains(call, ", 1)") || strings.HasPrefix(call, "id_type") {
				continue // of layouts with a type
			}
			if !strings.Contains(call, ".") || strings.HasPrefix(call, "id_") {
				call = "kiloshard." + call
			}
			calls = append(calls, "select "+call)
		}
	}
	if len(calls) < 8 {
		n.t.Errorf("%q are called on %s, expected all functions of the page", calls, host.Name)
	}
	for _, call := range calls {
		n.types("kiloshard exec " + strconv.Quote(call) + " --shards 42")
	}
}
