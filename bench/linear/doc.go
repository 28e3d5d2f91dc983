// Package linear checks that a store of the map is linearizable: that whatever many clients do at once, while the store is
// killed and started again, is what they could have seen had each done its operation at one instant between its call
// and its return.
//
// [Run] has clients load and swap, notes what each was told and when, and has porcupine
// (https://github.com/anishathalye/porcupine) look for such instants. What [mapstore.ErrOutcomeUnknown] left open may have
// happened at any instant after its call, or never. It also compares the store's history with what was acknowledged.
package linear
