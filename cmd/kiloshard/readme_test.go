package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// page is the README: its blocks of code by their language, in their order.
type page map[string][]string

func readme(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	p := page{}
	for _, m := range regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		p[m[1]] = append(p[m[1]], m[2])
	}
	for language, want := range map[string]int{"go": 6, "sh": 7, "sql": 2, "yaml": 6, "": 5} {
		if len(p[language]) != want {
			t.Fatalf("%d blocks of code of language %q, expected %d: give a new one its place in the tests", len(p[language]), language, want)
		}
	}
	return p
}

// newcomer is a directory in which somebody types what the README says.
type newcomer struct {
	t   *testing.T
	dir string   // where the last line has left its shell
	env []string // beside the environment
}

func newNewcomer(t *testing.T) *newcomer {
	return &newcomer{t: t, dir: t.TempDir(), env: []string{
		"PG_A_PASSWORD=unused", "PG_B_PASSWORD=unused", "GOFLAGS=" + os.Getenv("GOFLAGS") + " -buildvcs=false", "GOWORK=", "KILOSHARD_CONFIG=",
	}}
}

// types runs one line in a shell, and returns what it prints.
func (n *newcomer) types(line string) string {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "sh", "-e", "-c", line+"\npwd >&3")
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

// editsHosts changes what kiloshard init wrote, and returns it: the hosts are those of the test.
func (n *newcomer) editsHosts(hosts []shards.Host) string {
	n.t.Helper()
	config, err := os.ReadFile(filepath.Join(n.dir, "kiloshard.yaml"))
	if err != nil {
		n.t.Fatal(err)
	}
	edited := regexp.MustCompile(`(?m)(name: pg-([ab]), dsn: )"[^"]*"`).ReplaceAllString(string(config), `${1}"$${PG_${2}_DSN}"`)
	n.env = append(n.env, "PG_a_DSN="+hosts[0].ConnString(), "PG_b_DSN="+hosts[1].ConnString())
	n.writes("kiloshard.yaml", edited)
	return edited
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

// TestReadme goes by the README alone, from a clone to a service of one's own with a test. In two things it is spared the
// typing: the repository is cloned from here, and kiloshard is the program that is tested. The last block, a move, makes all its
// checks and moves nothing, which the tests of moves do.
func TestReadme(t *testing.T) {
	t.Parallel()
	p, n := readme(t), newNewcomer(t)
	hosts := shardtest.Hosts(t, 2)
	for line := range strings.Lines(p["sh"][1] + p["sh"][2]) {
		line = regexp.MustCompile(` +#.*`).ReplaceAllString(strings.TrimSpace(line), "")
		switch {
		case strings.HasPrefix(line, "git clone "):
			n.clones()
		case strings.HasPrefix(line, "(cd kiloshard && go install ./cmd/kiloshard)"):
			n.types("(cd kiloshard && go list ./cmd/kiloshard)")
		case line == "go run .":
			n.writes("main.go", p["go"][0])
			n.writes("main_test.go", p["go"][5])
			if out := n.types(line); !strings.Contains(out, "of user 31341 is in shard ") {
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
	n.runsTableOfSQL(hosts[0])

	// The commands of the sections on the map and on migrations, in the same cluster.
	n.writes("migrations/002_likes.sql", "create table likes (photo_id bigint primary key);\n")
	n.writes("smoke-test.sh", "#!/bin/sh\ntest -n \"$KILOSHARD_CANARY\"\n")
	n.types("chmod +x smoke-test.sh")
	if out := n.types(strings.TrimSpace(p["sh"][5])); !strings.Contains(out, "2,048 shards at version 2 now") {
		t.Errorf("a canary printed %q", out)
	}
	if out := n.types(strings.TrimSpace(p["sh"][6]) + " --login-with-password --dry-run"); !strings.Contains(out, "22 shards to be moved, 0 cannot be") {
		t.Errorf("a move printed %q", out)
	}
	n.env = append(n.env, `VISUAL=sed -i '/name: pg-b/s/weight: 1/weight: 1, closed: true/'`)
	n.writes("store.yaml", fmt.Sprintf("cluster: photos\nstore: {kind: postgres, dsn: %q, variables: [\"*\"]}\n", shardtest.Hosts(t, 1)[0].ConnString()))
	n.types("cp kiloshard.yaml file.yaml")
	for line := range strings.Lines(p["sh"][4]) {
		n.types(strings.Replace(strings.TrimSpace(line), "kiloshard map edit", "kiloshard -c file.yaml map edit", 1))
	}
	if out := n.types("kiloshard -c store.yaml map show"); !strings.Contains(out, "closed: true") {
		t.Errorf("the map that was edited and imported is %s", out)
	}

	// What a page shows that needs no cluster is the same to the letter.
	command, want, _ := strings.Cut(strings.TrimPrefix(p[""][3], "$ "), "\n")
	if got := n.types(command); got != want {
		t.Errorf("%s prints\n%s\nexpected\n%s", command, got, want)
	}
}

// runsTableOfSQL calls the functions that the README lists, on a host that has shard 42.
func (n *newcomer) runsTableOfSQL(host shards.Host) {
	n.t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		n.t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## In SQL\n")
	table, _, _ = strings.Cut(table, "\n## ")
	called := 0
	for _, m := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(table, -1) {
		for _, span := range regexp.MustCompile("`([^`]*\\([^`]*)`").FindAllStringSubmatch(m[1], -1) {
			call := strings.NewReplacer("(id)", "(shard_00042.next_id())", "(n)", "(3)", "(t)", "(now())").Replace(span[1])
			if strings.Contains(call, ", 1)") || strings.HasPrefix(call, "id_type") {
				continue // of layouts with a type
			}
			if !strings.Contains(call, ".") || strings.HasPrefix(call, "id_") {
				call = "kiloshard." + call
			}
			n.types(fmt.Sprintf(`kiloshard exec "create sequence if not exists photos_id_seq maxvalue 1125899906842623; select %s" --shards 42`, call))
			called++
		}
	}
	if called < 7 {
		n.t.Errorf("%d functions were called on %s, expected those of the table", called, host.Name)
	}
}
