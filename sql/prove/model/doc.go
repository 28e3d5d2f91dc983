// Package model checks the argument at the top of sql/engine.sql: it runs every interleaving of a few sessions that make
// IDs on one shard, with a clock that ticks and steps, calls that are canceled, and a server that crashes, and looks for a
// value that is given twice. In some interleavings a session stops while others go on, so freezes are covered.
//
// The model is small on purpose: a window of one value, three sessions, a few calls each. One operand of
// the engine's expressions is one step here. Its tests remove one safeguard at a time, and each removal must lead to a
// value given twice; a test prints the shortest sequence of steps that does. The cases that engine.sql leaves open are
// shown the same way.
//
// The model checks the argument, not the SQL: sql/prove stops real sessions between two expressions.
package model
