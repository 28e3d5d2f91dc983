package sqltree_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/sqltree"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const text = " select 1;\n-- a comment\nupdate ünï set a = 'x;y' ; delete from b"
	all, err := sqltree.Parse(text)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d statements, %v", len(all), err)
	}
	for i, want := range []string{"select 1", "update ünï set a = 'x;y' ", "delete from b"} {
		if got := text[all[i].Start:all[i].End]; got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
	if tree := string(all[2].Tree); !strings.Contains(tree, `"DeleteStmt"`) {
		t.Errorf("got %s", tree)
	}
	for sql, want := range map[string]string{
		"select 1;\nselekt": `line 2: syntax error at or near "selekt"`,
		"select\n\x00":      "line 2: there is a zero byte in it",
		"select " + strings.Repeat("(1+", 500) + "1" + strings.Repeat(")", 500): "nested more than 400 deep",
	} {
		_, err := sqltree.Parse(sql)
		var refused *sqltree.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: got %v, expected %s", sql, err, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	got, err := sqltree.Normalize("select * from users where id = 31341 and name = 'ann' limit 5")
	if err != nil || got != "select * from users where id = $1 and name = $2 limit $3" {
		t.Errorf("got %s, %v", got, err)
	}
	var refused *sqltree.Error
	if _, err := sqltree.Normalize("selekt 1"); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	if _, err := sqltree.Normalize("\x00"); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
