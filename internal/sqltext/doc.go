// Package sqltext takes SQL text apart into tokens and statements, by the rules of Postgres's own scanner
// (src/backend/parser/scan.l) and of psql (src/fe_utils/psqlscan.l). It is the one scanner of SQL in this module.
//
// It knows comments that nest, strings with and without escapes, strings that go on in the next line, dollar quotes, names
// in quotes, and letters beyond ASCII. It does not know the grammar: text that Postgres refuses is taken apart, too.
package sqltext
