// Package stores is kiloshard-lab bench stores: packages router/objects and router/entities beside statements for pgx,
// written by hand, on the same tables.
package stores
