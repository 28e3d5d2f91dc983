// Package connstring turns a connection string (DSN) as kiloshard.yaml has it into the one to connect with.
//
// [Variables] replaces each ${NAME} by its present value. [Localize] then applies the settings of this machine and
// makes file names absolute. [Address] returns the part of a DSN that is safe to print.
package connstring
