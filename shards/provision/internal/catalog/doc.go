// Package catalog reads functions, sequences and versions from Postgres's catalogs, and compares them with those that
// the scripts of package sql make. It does not know their purpose.
//
// A pattern is a regular expression for the names of schemas; the helper schema is always read too.
package catalog
