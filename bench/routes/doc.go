// Package routes is kiloshard-lab bench route: package router beside pgxpool.
package routes
