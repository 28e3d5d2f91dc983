package versions_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/migrate/versions"
)

// What the server answers is tested where it is asked, in migrate and migrate/drift.
func TestParse(t *testing.T) {
	t.Parallel()
	schemas := []string{"shard_00000", "shard_00001", "shard_00002", "shard_00003", "shard_00004"}
	found, err := versions.Parse(`["7","no schema","no table","no row","error a, \"b\" (SQLSTATE 42703)"]`, schemas)
	if err != nil {
		t.Fatal(err)
	}
	if want := (versions.Version{Schema: true, Table: true, Number: 7}); found[0] != want {
		t.Errorf("at a version: got %+v, want %+v", found[0], want)
	}
	if found[1] != (versions.Version{}) || found[2] != (versions.Version{Schema: true}) {
		t.Errorf("without schema and table: got %+v", found[1:3])
	}
	if !errors.Is(found[3].Err, versions.ErrNoRow) {
		t.Errorf("without a row: got %v", found[3].Err)
	}
	if want := `its schema_version cannot be read: a, "b" (SQLSTATE 42703)`; found[4].Err == nil || found[4].Err.Error() != want {
		t.Errorf("broken: got %v, want %s", found[4].Err, want)
	}
	for _, answer := range []string{``, `["1"]`, `["1","2","3","4","x"]`} {
		if _, err := versions.Parse(answer, schemas); err == nil {
			t.Errorf("%q: got no error", answer)
		}
	}
}
