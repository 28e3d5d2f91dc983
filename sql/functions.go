package sql

import "strings"

// quote stands around the body of every PL/pgSQL function in the scripts.
const quote = "$kiloshard$"

// Function is a PL/pgSQL function that a rendered script creates.
type Function struct {
	Name string // without its schema
	Args int    // how many parameters it has
	Body string // as pg_proc.prosrc holds it
}

// Functions returns the PL/pgSQL functions that a rendered script creates, in its order. They are
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
		args, _, _ := strings.Cut(rest, ") RETURNS")
		f := Function{Name: name, Body: pieces[i]}
		if args != "" {
			f.Args = 1 + strings.Count(args, ",")
		}
		functions = append(functions, f)
	}
	return functions
}
