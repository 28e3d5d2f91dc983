// Package routes is kiloshard bench route: package router beside pgxpool.
package routes
