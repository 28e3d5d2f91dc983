package rows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
)

// Names of the same object in each schema are the same, in any type. A name of an object in the other schema is not,
// although its text is the same.
func TestNames(t *testing.T) {
	t.Parallel()
	conn := hosts(t)[0]
	exec(t, conn, `create schema photos__moved_1`)
	for _, schema := range []string{"photos", "photos__moved_1"} {
		exec(t, conn, strings.ReplaceAll(`create table SCHEMA.a (n int primary key, t regclass); create type SCHEMA.kinds as range (subtype = regtype); create domain SCHEMA.names as regclass[];
			create table SCHEMA.b (r SCHEMA.kinds, names SCHEMA.names, texts text[]); insert into SCHEMA.a values (1, 'SCHEMA.b');
			insert into SCHEMA.b values ('[SCHEMA.b,SCHEMA.b]', '{SCHEMA.a,NULL}', '{photos.a}')`, "SCHEMA", schema))
	}
	sums := func(schema string) string {
		t.Helper()
		all, err := rows.Sums(t.Context(), conn, schema, "photos", rows.All, "")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(all)
	}
	want := sums("photos")
	if got := sums("photos__moved_1"); got != want {
		t.Errorf("the same names: got %s, expected %s", got, want)
	}
	for _, change := range []string{`update photos__moved_1.a set t = 'photos.b'`, `update photos__moved_1.b set names = '{photos.a,NULL}'`, `update photos__moved_1.b set r = '[photos.b,photos.b]'`, `update photos__moved_1.b set texts = '{photos__moved_1.a}'`} {
		exec(t, conn, "begin; "+change)
		if sums("photos__moved_1") == want {
			t.Errorf("%s: no difference", change)
		}
		exec(t, conn, "rollback")
	}
}
