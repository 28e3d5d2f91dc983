// Package filestore keeps the map in kiloshard.yaml itself, and its history in a directory beside it,
// kiloshard.yaml.history.
//
// Only [Store.Swap] writes the file. An edit by hand makes the next version: one more than the newest in the history,
// or the field version of the file if that is more. Swap and Follow write the edit into the history, under a lock,
// before anything follows it.
//
// Swap writes the new version to the file "pending" of the history, replaces kiloshard.yaml, and gives "pending" the
// name of the version. If the process is killed, the next one that takes the lock completes the last step, or removes
// "pending".
package filestore
