// Package linear checks that a store of the map is linearizable: many clients use it at once, while it is killed and
// restarted, and their results are the same as if each operation had run at one instant between its call and its return.
//
// In [Run] clients load and swap maps and record their results and times. porcupine
// (https://github.com/anishathalye/porcupine) then searches for such instants. An operation that ended with
// [mapstore.ErrOutcomeUnknown] may have happened at any instant after its call, or never. Run also compares the store's
// history with the swaps that succeeded.
package linear
