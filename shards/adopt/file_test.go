package adopt_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/tables"
)

func TestFileRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"strategy: {by: modulo}":                                                   "adopt.yaml:1: key: missing",
		"key: users.id":                                                            "adopt.yaml:1: key: users.id: expected a column with its table and schema",
		"key: public.users.id":                                                     `strategy: by "", hash ""`,
		"key: public.users.id\nstrategy: {by: range}":                              "adopt.yaml:2: strategy: by \"range\"",
		head + "colour: red":                                                       `adopt.yaml:3: unknown field "colour"`,
		head + "tables:\n- {table: a.b}":                                           "adopt.yaml:4: tables[0].is: missing",
		head + "tables:\n- {table: a.b, is: x}":                                    `adopt.yaml:4: tables[0].is: "x"; expected keyed`,
		head + "tables:\n- {table: b, is: left}":                                   "adopt.yaml:4: tables[0].table: b: expected a table with its schema",
		head + "tables:\n- {table: a.b, is: left}\n- {table: a.b, is: left}":       "adopt.yaml:5: tables[1].table: a.b a second time",
		head + "tables:\n- {table: a.b, is: left, by: c}":                          "adopt.yaml:4: tables[0].by",
		head + "tables:\n- {table: a.b, is: keyed, through: c}":                    "adopt.yaml:4: tables[0].through",
		head + "tables:\n- {table: a.b, is: left, crosses: [c]}":                   "adopt.yaml:4: tables[0].crosses",
		head + "tables:\n- {table: a.b, is: keyed, by: c, keyless: keyed}":         "adopt.yaml:4: tables[0].keyless",
		head + "tables:\n- {table: a.b, is: keyed, by: c, ids: serial}":            `adopt.yaml:4: tables[0].ids: "serial"; expected next_id or sequence`,
		head + "tables:\n- {table: a.b, is: keyed, by: c, copy: 7}":                "adopt.yaml:4: tables[0].copy",
		head + "tables:\n- {table: a.b, is: left, ids: next_id}":                   "adopt.yaml:4: tables[0]: ids or copy of a table that is left",
		head + "tables:\n- {table: a.b, is: reference, copy: true}":                "adopt.yaml:4: tables[0]: ids or copy of a table that is reference",
		head + "links:\n- {from: a.b, columns: [c], to: d.e}":                      "adopt.yaml:4: links[0].references: missing",
		head + "tables:\n- {table: a.b, is: keyed, by: c, keyless: left, more: 1}": `unknown field "more"`,
	} {
		if _, err := adopt.ParseFile("adopt.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %s", text, err, want)
		}
	}
}

// TestFileIsReadBack holds that a plan by the file that a plan has written is the same, and keeps decisions and links.
func TestFileIsReadBack(t *testing.T) {
	t.Parallel()
	host := database(t, service)
	first := look(t, host, "")
	second := look(t, host, string(first.Write()))
	for _, one := range first.Tables {
		if two := second.Table(one.Table); two.Is != one.Is || two.By != one.By || two.Through != one.Through {
			t.Errorf("%s: first %s %s%s, then %s %s%s", one.Table, one.Is, one.By, one.Through, two.Is, two.By, two.Through)
		}
	}
	if len(second.New)+len(second.Missing) > 0 {
		t.Errorf("new %v, missing %v", second.New, second.Missing)
	}
	if text := string(first.Write()); !strings.Contains(text, "  # by follows_followee_fkey (followee → public.users) 50 rows of 50 refer to rows of another key\n"+
		"  # {table: public.follows, is: keyed, by: follower, crosses: [follows_followee_fkey]}\n") {
		t.Errorf("the file does not say what can be decided:\n%s", text)
	}
	links := "links:\n  - {from: public.clicks, columns: [photo_id], to: public.photos, references: [id]}\n"
	text := string(look(t, host, strings.Replace(decided, "tables:\n", links+"tables:\n", 1)).Write())
	for line := range strings.Lines(links + decided) {
		if !strings.Contains(line, "gone") && !strings.Contains(line, "public.albums") && !strings.Contains(text, line) {
			t.Errorf("the file lost %s", line)
		}
	}
}

// hostile is a name that is trouble in SQL, YAML, HTML and on terminals.
const hostile = "a\"b'c\n- {x: &y *z}\u0085\r- {y}#\u2028\x1b[2J<script>x</script>,]}%s\\"

// TestHostileNames holds that every name is data.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	host := database(t, strings.ReplaceAll(`
		create schema X;
		create table users (id bigint primary key);
		create table X.X (X bigint not null constraint X references users);
		create table X.many (one bigint constraint "one" references users, two bigint constraint X references users, three bigint unique);
		create table X.none ("u" text);
		create function X.X() returns trigger language plpgsql as 'begin return new; end';
		create trigger X before insert on X.X for each row execute function X.X();
		create view X.v as select * from X.X;
		insert into users values (1), (2);
		insert into X.X values (1), (2);
		insert into X.many values (1, 2), (null, 1);
	`, "X", pgx.Identifier{hostile}.Sanitize()))
	plan := look(t, host, "")
	text := string(plan.Write())
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("control characters are in the file: %q", text)
	}
	again := look(t, host, text)
	for _, one := range plan.Tables {
		if two := again.Table(one.Table); two == nil || two.Is != one.Is {
			t.Errorf("%q: first %+v, then %+v", one.Table, one, two)
		}
	}
	var page strings.Builder
	if err := plan.Page().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script") {
		t.Error("a name is code in the report")
	}
	if names := plan.Undecided(); !slices.ContainsFunc(names, func(n tables.Name) bool { return n.Table == "many" }) || len(plan.Tables) != 4 {
		t.Errorf("undecided: %q of %d tables", names, len(plan.Tables))
	}
}
