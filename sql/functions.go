package sql

import (
	"regexp"
	"strings"
)

// quote delimits the body of every function in the scripts.
const quote = "$kiloshard$"

// Function is a function that a rendered script creates.
type Function struct {
	Name       string // without its schema
	Args       int    // how many parameters it has
	Definition string // everything except name and body, in the form of [Definition]
	Public     bool   // whether PUBLIC may call it
	Body       string // pg_proc.prosrc
}

// Definition is an expression over pg_proc p and pg_language l that describes a function, without its name and body.
// Evaluate it with pg_catalog in the search_path.
const Definition = `pg_catalog.format('(%s) RETURNS %s LANGUAGE %s', pg_catalog.pg_get_function_arguments(p.oid), pg_catalog.pg_get_function_result(p.oid), l.lanname)
	|| CASE p.provolatile WHEN 'i' THEN ' IMMUTABLE' WHEN 's' THEN ' STABLE' ELSE ' VOLATILE' END
	|| CASE WHEN p.proisstrict THEN ' STRICT' ELSE '' END
	|| CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END
	|| CASE WHEN p.proleakproof THEN ' LEAKPROOF' ELSE '' END
	|| CASE p.proparallel WHEN 's' THEN ' PARALLEL SAFE' WHEN 'r' THEN ' PARALLEL RESTRICTED' ELSE '' END
	|| coalesce(' SET ' || pg_catalog.array_to_string(p.proconfig, ' SET '), '')`

// Functions returns the functions that a rendered script creates with a string body, in the script's order. A database
// in which the script ran, and nothing changed since, holds exactly these.
func Functions(script string) []Function {
	var functions []Function
	revoked := revocation.FindString(script)
	pieces := strings.Split(script, quote)
	for i := 1; i < len(pieces); i += 2 {
		start := strings.LastIndex(pieces[i-1], "CREATE OR REPLACE FUNCTION ")
		if start < 0 {
			continue // a DO block
		}
		head := strings.Join(strings.Fields(strings.TrimSuffix(pieces[i-1][start:], "AS ")), " ")
		_, head, _ = strings.Cut(head, ".")
		name, rest, _ := strings.Cut(head, "(")
		args, rest, _ := strings.Cut(rest, ") RETURNS ")
		result, attributes, _ := strings.Cut(rest, " LANGUAGE ")
		f := Function{
			Name: name, Definition: definition(args, result, attributes), Body: pieces[i],
			Public: !strings.Contains(revoked, "."+name+"("),
		}
		if args != "" {
			f.Args = 1 + strings.Count(args, ",")
		}
		functions = append(functions, f)
	}
	return functions
}

var revocation = regexp.MustCompile(`REVOKE EXECUTE ON FUNCTION .* FROM PUBLIC`)

// types maps the scripts' spelling of types to that of Postgres.
var types = strings.NewReplacer(" int,", " integer,", " int)", " integer)", " pg_catalog.", " ")

// definition returns a function of a script in the form of [Definition].
func definition(args, result, attributes string) string {
	args = strings.TrimPrefix(types.Replace(" ("+args+")"), " ")
	text := args + " RETURNS " + strings.TrimPrefix(strings.Replace(types.Replace(" "+result+","), "TABLE (", "TABLE(", 1), " ")
	text = strings.TrimSuffix(text, ",")
	attributes, config, _ := strings.Cut(attributes, " SET ")
	language, _, _ := strings.Cut(attributes, " ")
	text += " LANGUAGE " + language
	volatile := " VOLATILE"
	for _, v := range []string{" IMMUTABLE", " STABLE"} {
		if strings.Contains(attributes, v) {
			volatile = v
		}
	}
	text += volatile
	for _, attribute := range []string{" STRICT", " SECURITY DEFINER", " LEAKPROOF", " PARALLEL SAFE", " PARALLEL RESTRICTED"} {
		if strings.Contains(attributes, attribute) {
			text += attribute
		}
	}
	if config != "" {
		text += " SET " + strings.Replace(config, " = ", "=", 1)
	}
	return text
}
