package mapstore_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// TestFileSavedDuringSwap has an editor save the file after Swap has read it and before Swap writes it. The save runs
// in the lookup of variables.
func TestFileSavedDuringSwap(t *testing.T) {
	t.Parallel()
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "kiloshard.yaml")
			write(t, path, []byte(commented))
			var save func()
			s := openFile(t, path, func(o *mapstore.Options) {
				o.Lookup = func(variable string) (string, bool) {
					if save != nil {
						save()
						save = nil
					}
					return environment(variable)
				}
			})
			swap(t, s, 0, 2)
			save = func() { edit(t, path, weighing("3")) }
			_, err := s.Swap(newContext(t), 1, newChange(4))
			if conflict := checkAs[*mapstore.ConflictError](t, err); conflict.Found != 2 {
				t.Errorf("conflict %+v with what was saved", conflict)
			}
			if got := string(readFile(t, path)); got != weighing("3") {
				t.Fatalf("what was saved is lost; the file is\n%s", got)
			}
			for _, e := range []mapstore.Entry{load(t, s), load(t, openFile(t, path)), watch(t, s, 1).entry(t)} {
				if e.Map.Version() != 2 || markOf(e.Map) != 3 || e.By != "hand" {
					t.Errorf("version %d with mark %d by %q, want 2 with 3 by hand", e.Map.Version(), markOf(e.Map), e.By)
				}
			}
			var marks []int
			for _, e := range versions(t, s) {
				marks = append(marks, markOf(e.Map))
			}
			if !slices.Equal(marks, []int{3, 2, 1}) {
				t.Errorf("marks of the versions, the newest first: %v; want 3, 2, 1", marks)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".kiloshard.yaml.*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// A file that is created while Swap makes the first version becomes the version before it.
func TestFileMadeDuringSwap(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	made := false
	s := openFile(t, path, func(o *mapstore.Options) {
		o.Lookup = func(variable string) (string, bool) {
			if !made {
				made = true
				if err := os.WriteFile(path, []byte(weighing("3")), 0o600); err != nil {
					t.Error(err)
				}
			}
			return environment(variable)
		}
	})
	swap(t, s, 0, 4)
	checkEntry(t, load(t, s), 1, 4)
	if all := versions(t, s); len(all) != 2 || markOf(all[1].Map) != 3 {
		t.Errorf("got %d versions, want the one that was saved, too", len(all))
	}
}
