// Package sqltree parses SQL with Postgres 17's own parser (libpg_query, as WebAssembly: no C compiler is needed), and returns
// parse trees as JSON, with the names of the parser's JSON and of src/include/nodes/parsenodes.h.
//
// The first call takes seconds, since it compiles the parser; so do concurrent calls. After a text that crashes the parser, all
// other calls fail.
package sqltree
