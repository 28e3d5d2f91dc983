package lint

import (
	"encoding/json"
	"slices"
	"strings"
)

// volatileCall returns the first function call in an expression that may return different values for the rows of a
// statement, or the empty text.
func volatileCall(expr json.RawMessage) string {
	found := ""
	var tree any
	_ = json.Unmarshal(expr, &tree) // it was read once already
	walk("", tree, 0, func(name string, body map[string]any, _ int) {
		if name != "FuncCall" || found != "" {
			return
		}
		parts := namesIn(body["funcname"])
		if len(parts) == 2 && parts[0] == "pg_catalog" {
			parts = parts[1:]
		}
		if len(parts) != 1 || !slices.Contains(steady, parts[0]) {
			found = strings.Join(parts, ".") + "()"
		}
	})
	return found
}

func namesIn(list any) []string {
	var parts []string
	walk("", list, 0, func(name string, body map[string]any, _ int) {
		if text, ok := body["sval"].(string); ok && name == "String" {
			parts = append(parts, text)
		}
	})
	return parts
}

// steady are stable or immutable functions of Postgres (pg_proc.provolatile) that are common in defaults.
// CURRENT_TIMESTAMP and the like are not function calls.
var steady = []string{
	"abs", "age", "array_fill", "btrim", "ceil", "concat", "concat_ws", "current_database", "current_schema",
	"current_setting", "date_part", "date_trunc", "daterange", "decode", "encode", "extract", "floor", "format",
	"int4range", "int8range", "json_build_array", "json_build_object", "jsonb_build_array", "jsonb_build_object",
	"left", "length", "lower", "lpad", "ltrim", "make_date", "make_interval", "make_time", "make_timestamp",
	"make_timestamptz", "md5", "now", "numrange", "power", "repeat", "replace", "right", "round", "rpad", "rtrim",
	"sha256", "sqrt", "statement_timestamp", "string_to_array", "substr", "substring", "timezone", "to_char",
	"to_date", "to_json", "to_jsonb", "to_number", "to_timestamp", "to_tsvector", "transaction_timestamp",
	"tsrange", "tstzrange", "upper",
}
