// Package prove is the proof suite for IDs: tests that ask for IDs under load while real faults are done to real
// Postgres servers, and check all the IDs that clients received, before and after each fault.
//
// # Faults
//
//   - The engine's clock steps by 2 seconds ahead and back, and drifts both ways.
//   - The whole server is killed with SIGKILL, ten times, and recovers from its WAL.
//   - The primary is killed and a standby promoted, a synchronous one, and an asynchronous one that has lost WAL.
//   - A shard is dumped by pg_dump, goes on, and is restored into another database, where it goes on.
//   - A server is restored from a base backup and a WAL archive to what it was ten seconds ago.
//   - Statements are cancelled and sessions ended at random, many of them in catch_up.
//   - Of 200 sessions, dozens at a time are frozen in mid-call with SIGSTOP, for a second, and woken.
//
// Each test makes sure that its fault took place: that the server's clock did step, that the new primary did not know
// of IDs that clients had, that sessions were in mid-call.
//
// # Checks
//
// Every ID that a client received is in the test's history, those of statements that failed afterwards included. None
// may be there twice. Within a session they rise; and an ID is larger than all that any session had received for its
// shard when the call began, so that IDs rise across faults, too. The shard is the session's, and the time lies near
// what the server's clock said during the call: from 15 ms behind to 5 ms ahead, plus what engine.sql names. After a
// clock stepped back, it may lie as far ahead as the clock has ever been.
//
// After the cancelled calls no lock of the engine is left, and none of them took longer than a second.
//
// # How to run it
//
// As a part of go test ./... it runs in a short form, with fewer and shorter faults. The full form:
//
//	make prove
//	make prove IMAGE=postgres:17       # in a container, with the servers of that image
//	make prove PROVE=published         # on Instagram's function, as published: this fails
//	make prove PROVE=bare              # on a sequence without a clock: this fails
//
// It needs Postgres's programs, version 15 or later (Debian's package postgresql). Without them tests skip;
// in the full form and with CI=true they fail.
//
// # Mutants
//
// Faults meet the engine where chance has it. stops.sql has it call functions of the test's own for the clock, nextval,
// setval and the rest, at which a session stands still for as long as the test wants: a setter exactly before its setval.
// TestMutants does that to the engine without one of its safeguards at a time, each of which gives an ID twice, and to
// the whole one, which gives none. The package model goes through all interleavings of a small model.
//
// The suite can fail: three of its tests, which always run, do to the published function, and to a bare sequence, what
// others do to Kiloshard's, and expect that the checker finds IDs given twice.
package prove
