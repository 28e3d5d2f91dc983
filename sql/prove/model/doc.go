// Package model checks the argument at the top of sql/engine.sql: it runs every interleaving of a few sessions that make
// IDs on one shard, with a clock that ticks and steps, calls that are canceled, and a server that crashes, and looks for a
// value that is given twice. A session that is frozen is one that others overtake, so every freeze is among them.
//
// The model is small on purpose: a window of one value, three sessions, a few calls each. What the engine does in one
// operand of an expression is one step here. Its tests take out one safeguard after the other, each of which must lead to a
// value given twice; the shortest way there is printed as a story. What engine.sql leaves open is shown the same way.
//
// The model checks the argument, not the SQL: sql/prove holds real sessions still between two expressions.
package model
