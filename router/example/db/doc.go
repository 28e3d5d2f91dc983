// Package db is what sqlc makes of queries.sql and of the tables in the migrations. Do not edit its other files: change
// those, and run go generate.
//
// Names in the SQL have no schema in front. A shard's handle, which is the DBTX of [New], sees to that.
package db

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
