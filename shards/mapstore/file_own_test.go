package mapstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

const commented = `# Our photos. Ask Alice before you change this.
cluster: photos

shards: 8   # opened in May
epoch: 2026-01-01

# The machines.
hosts:
  # the old one
  - {name: pg-a, dsn: "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app"} # in the cellar
  - name: pg-b # under the roof
    dsn: "postgres://app@10.0.0.2/app"
placement:   # half and half
  - {shards: 0-3, host: pg-a}   # first
  - {shards: 4-7, host: pg-b}   # second
migrations: ./migrations   # reviewed by Bob
# The end.
`

func TestFileKeepsComments(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	write(t, path, []byte(commented))
	s := openFile(t, path)
	e := load(t, s)
	if e.Map.Version() != 0 || e.Map.Config().Migrations != "./migrations" {
		t.Fatalf("map %+v", e.Map.Config())
	}
	change := func(change func(c *shards.Config)) string {
		t.Helper()
		now := load(t, s)
		c := now.Map.Config()
		c.Hosts, c.Placement = append([]shards.Host(nil), c.Hosts...), append([]shards.Placement(nil), c.Placement...)
		change(&c)
		made, err := s.Swap(newContext(t), now.Map.Version(), mapstore.Change{Config: c, By: "alice"})
		if err != nil {
			t.Fatal(err)
		}
		text := readFile(t, path)
		if got, err := shards.Parse("", text, environment); err != nil || got.Version != made.Map.Version() {
			t.Fatalf("version %d, error %v in\n%s", got.Version, err, text)
		}
		return string(text)
	}
	check := func(got string, replaced ...string) {
		t.Helper()
		if want := strings.NewReplacer(replaced...).Replace(commented); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}

	const placement = "placement:   # half and half\n  - {shards: 0-3, host: pg-a}   # first\n  - {shards: 4-7, host: pg-b}   # second\n"
	const plain = "placement:\n  - {shards: 0-4, host: pg-a}\n  - {shards: 5-7, host: pg-b}\n"
	check(change(func(c *shards.Config) {
		c.Placement[0].Shards, c.Placement[1].Shards = shards.SetOfRanges(shards.Range{First: 0, Last: 4}), shards.SetOfRanges(shards.Range{First: 5, Last: 7})
	}), "cluster: photos\n", "cluster: photos\nversion: 1\n", placement, plain)
	check(change(func(c *shards.Config) { c.Migrations = "./other" }),
		"cluster: photos\n", "cluster: photos\nversion: 2\n", placement, plain, "./migrations   # reviewed by Bob", "./other")
	check(change(func(c *shards.Config) { c.Migrations = "" }),
		"cluster: photos\n", "cluster: photos\nversion: 3\n", placement, plain, "migrations: ./migrations   # reviewed by Bob\n", "")

	write(t, path, []byte("{cluster: photos, shards: 8, epoch: 2026-01-01, hosts: [{name: pg-a, dsn: postgres://app@10.0.0.1/app}], placement: [{shards: 0-7, host: pg-a}]}"))
	if got := change(func(c *shards.Config) { c.Hosts[0].Weight = 3 }); !strings.Contains(got, "\nversion: 5\n") {
		t.Errorf("a text that cannot be edited was not rewritten:\n%s", got)
	}
}

func TestFileLinkAndModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "kiloshard.yaml")
	write(t, path, []byte(commented))
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("later.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	swap(t, openFile(t, filepath.Join(dir, "link.yaml")), 0, 1)
	checkEntry(t, load(t, openFile(t, filepath.Join(dir, "later.yaml"))), 1, 1)
	s := openFile(t, link)
	w := watch(t, openFile(t, path), 0)
	swap(t, s, 0, 3)
	checkEntry(t, w.entry(t), 1, 3)
	if target, err := os.Readlink(link); err != nil || target != "real.yaml" {
		t.Errorf("link to %s, error %v", target, err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o640, path + ".history": 0o700 | os.ModeDir, path + ".history/000001.yaml": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: mode %v, error %v; want %v", name, info.Mode(), err, mode)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 6 {
		t.Errorf("left over: %v, error %v", names, err)
	}
}

// edits are the ways in which editors write.
var edits = map[string]func(t *testing.T, path, text string){
	"in place": func(t *testing.T, path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"by rename": func(t *testing.T, path, text string) {
		write(t, path+".new", []byte(text))
		if err := os.Rename(path, path+"~"); err != nil { // vim does the same: for a moment there is no file
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	},
}

func weighing(weight string) string {
	return strings.Replace(commented, "10.0.0.1/app\"", "10.0.0.1/app\", weight: "+weight, 1)
}

func TestFileEditedByHand(t *testing.T) {
	t.Parallel()
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "kiloshard.yaml")
			write(t, path, []byte(commented))
			s, other := openFile(t, path), openFile(t, path)
			w := watch(t, s, -1)
			checkFound(t, w.entry(t))
			check := func(e mapstore.Entry, version, mark int, by string) {
				t.Helper()
				if e.Map.Version() != version || markOf(e.Map) != mark || e.By != by {
					t.Errorf("version %d with mark %d by %q, want %d with %d by %q", e.Map.Version(), markOf(e.Map), e.By, version, mark, by)
				}
			}
			checkFound(t, load(t, other))
			edit(t, path, weighing("2"))
			check(w.entry(t), 1, 2, "hand")
			check(load(t, other), 1, 2, "hand")
			edit(t, path, weighing("3"))
			check(w.entry(t), 2, 3, "hand")
			swap(t, other, 2, 4)
			check(w.entry(t), 3, 4, "alice")
			edit(t, path, weighing("5"))
			check(w.entry(t), 4, 5, "hand")
			edit(t, path, strings.Replace(weighing("6"), "shards:", "version: 12\nshards:", 1))
			check(w.entry(t), 12, 6, "hand")
			check(load(t, openFile(t, path)), 12, 6, "hand")
			edit(t, path, commented)
			check(w.entry(t), 13, 1, "hand")

			var got []int
			for _, e := range versions(t, other) {
				got = append(got, e.Map.Version())
			}
			want := []int{13, 12, 4, 3, 2, 1, 0}
			if len(got) != len(want) {
				t.Fatalf("history %v, want %v", got, want)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("history %v, want %v", got, want)
				}
			}
		})
	}
}

// checkFound checks the entry of a file that has not been changed yet.
func checkFound(t *testing.T, e mapstore.Entry) {
	t.Helper()
	if e.Map.Version() != 0 || markOf(e.Map) != 1 || e.By != "hand" {
		t.Errorf("version %d with mark %d by %q, want 0 with 1 by hand", e.Map.Version(), markOf(e.Map), e.By)
	}
}

func TestFileEditRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	s := openFile(t, path)
	swap(t, s, 0, 1)
	good := readFile(t, path)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	write(t, path, []byte(strings.Replace(string(good), "2026-01-01", "2026-01-02", 1)))
	_ = checkAs[*shards.ChangeError](t, w.fails(t))
	_, err := openFile(t, path).Load(newContext(t))
	_ = checkAs[*shards.ChangeError](t, err)
	write(t, path, []byte(strings.Replace(string(good), "app:${PG_A_PASSWORD}", "app:sesame", 1)))
	if err := w.fails(t); strings.Contains(err.Error(), "sesame") {
		t.Errorf("error %v shows the password", err)
	} else {
		_ = checkAs[*shards.FieldError](t, err)
	}
	write(t, path, good)
	if all := versions(t, s); len(all) != 1 {
		t.Errorf("%d versions, want 1", len(all))
	}
	swap(t, s, 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
}

func TestFileRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	s := openFile(t, path, func(o *mapstore.Options) { o.Poll = time.Hour })
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if back := checkAs[*mapstore.WentBackError](t, w.fails(t)); back.Seen != 1 || back.Found != 0 {
		t.Errorf("%+v", back)
	}
	_, err := s.Load(newContext(t))
	checkIs(t, err, mapstore.ErrNoMap)
}

// TestFilePasswordLeaves replaces a password in the file by a variable.
func TestFilePasswordLeaves(t *testing.T) {
	t.Parallel()
	literal := strings.Replace(commented, "${PG_A_PASSWORD}", "sesame", 1)
	for name, leave := range map[string]func(t *testing.T, s mapstore.Store, path string){
		"by Swap": func(t *testing.T, s mapstore.Store, _ string) {
			c := load(t, s).Map.Config()
			if _, err := s.Swap(newContext(t), 0, mapstore.Change{Config: c}); err == nil || strings.Contains(err.Error(), "sesame") {
				t.Errorf("error %v of a password", err)
			}
			swap(t, s, 0, 2)
		},
		"by hand": func(t *testing.T, _ mapstore.Store, path string) { write(t, path, []byte(weighing("2"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "kiloshard.yaml")
			write(t, path, []byte(literal))
			s := openFile(t, path)
			w := watch(t, s, -1)
			checkFound(t, w.entry(t))
			leave(t, s, path)
			if e := w.entry(t); e.Map.Version() != 1 || markOf(e.Map) != 2 {
				t.Errorf("version %d with mark %d", e.Map.Version(), markOf(e.Map))
			}
			all := versions(t, s)
			if len(all) != 1 {
				t.Errorf("%d versions, want 1", len(all))
			}
			names, err := filepath.Glob(path + "*/*")
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			for _, name := range append(names, path) {
				if strings.Contains(string(readFile(t, name)), "sesame") {
					t.Errorf("%s has the password", name)
				}
			}
		})
	}
}
