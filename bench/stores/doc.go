// Package stores compares packages router/objects and router/entities with hand-written statements for pgx on the same
// tables, in turns.
package stores
