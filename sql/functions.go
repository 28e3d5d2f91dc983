package sql

import "strings"

// quote stands around the body of every function in the scripts whose body is a text.
const quote = "$kiloshard$"

// Function is a function that a rendered script creates.
type Function struct {
	Name     string // without its schema
	Args     int    // how many parameters it has
	Language string // plpgsql or sql
	Body     string // as pg_proc.prosrc holds it
}

// Functions returns the functions that a rendered script creates with a text as their body, in its order. They are
// what a database must hold when the script has run in it and nobody has changed anything since.
func Functions(script string) []Function {
	var functions []Function
	pieces := strings.Split(script, quote)
	for i := 1; i < len(pieces); i += 2 {
		start := strings.LastIndex(pieces[i-1], "CREATE OR REPLACE FUNCTION ")
		if start < 0 {
			continue // a DO block
		}
		head := pieces[i-1][start:]
		_, head, _ = strings.Cut(head, ".")
		name, rest, _ := strings.Cut(head, "(")
		args, rest, _ := strings.Cut(rest, ") RETURNS")
		_, rest, _ = strings.Cut(rest, "LANGUAGE ")
		language, _, _ := strings.Cut(rest, " ")
		f := Function{Name: name, Language: language, Body: pieces[i]}
		if args != "" {
			f.Args = 1 + strings.Count(args, ",")
		}
		functions = append(functions, f)
	}
	return functions
}
