// Package columns checks the columns of shards that hold IDs: the functions and sequences that their defaults use, and
// whether their types can hold an ID.
package columns
