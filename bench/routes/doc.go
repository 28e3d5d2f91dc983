// Package routes is kiloshard-lab bench route: package router beside pgxpool.
//
// Its parts are one table in routes.go. A part sets up its sides on a stage, has them take turns in a comparison, and so
// adds rows to the report.
package routes
