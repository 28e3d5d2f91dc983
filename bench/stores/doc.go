// Package stores measures packages router/objects and router/entities beside statements that are written by hand for pgx, on
// the same tables, the two taking turns.
package stores
