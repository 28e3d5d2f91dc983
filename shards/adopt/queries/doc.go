// Package queries says of each statement of a service where it goes once the tables of a [adopt.Plan] are in shards.
//
// Statements come from pg_stat_statements ([ReadStatistics]) or from a log file ([ReadLog]). Each is parsed by Postgres's own
// parser, and gets a [Class]:
//
//	key          one shard: the statement has the key
//	chain        one shard, once a lookup has found the key: the statement names a row
//	fan-out      all shards, or those of several keys
//	cross-shard  a join or a transaction of rows of several keys
//	change       it cannot stay as it is
//	elsewhere    no sharded table is in it
//	unread       the parser cannot read it, or what it does is not seen
//
// Columns that must be equal are one set: by =, IN, JOIN … USING and the values of INSERT, also over subqueries, CTEs and views.
// Two rows are in one shard if their keys are in one set, or if one refers to the other over a foreign key that leads to no other
// key. A condition below OR, NOT or an outer join is not taken for true. So the answer can be worse than the truth, and is not
// better, unless a function does what its text does not show.
package queries
