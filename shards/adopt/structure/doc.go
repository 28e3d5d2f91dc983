// Package structure makes the tables of a shard from the structure of the old ones: columns with their defaults, checks, generated
// columns, keys, indexes, statistics, comments, rights, triggers and foreign keys, with their names.
//
// [Read] reads what the catalog says of the sharded tables of a plan. Postgres writes all definitions itself; package structure only puts
// another table in the place of the old one. [Set.Problems] names what it cannot make: partitioned, foreign, unlogged and typed tables,
// inheritance, rules, row security, unique keys that are deferrable, checks that are not valid, chains without a foreign key, names that two
// schemas have.
package structure
