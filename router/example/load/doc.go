// Package load uses the photo service as its users do, and tells what they felt.
//
// Requests are begun at a fixed rate, whether those before are answered or not, as users do not wait for each other. The
// time of a request runs from the moment when it was due until it has succeeded: with the pauses that the service asks
// for, and all attempts. So a service that stands still for a second shows in the figures of all who came in that second.
//
// What the service has acknowledged is written down, and [Load.Check] looks at each of these writes afterwards: is it
// there, and is it there once? A write that had no answer may be there or not, but not twice.
package load
