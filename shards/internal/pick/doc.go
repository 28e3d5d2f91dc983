// Package pick finds the shard of a key by arithmetic: the remainder of a number or of a hash, or ranges of keys.
//
// Constructors such as [Modulo] return a [Picker]. [Moved] compares two lists of ranges. Shards are plain numbers here,
// and keys are numbers or texts: package shards checks the values and gives the errors their types.
package pick
