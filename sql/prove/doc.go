// Package prove is the proof suite for IDs: its tests make IDs under load, cause real faults in real Postgres servers,
// and check all the IDs that clients received before and after each fault.
//
// # Faults
//
//   - The engine's clock steps by 2 seconds ahead and back, and drifts both ways.
//   - The whole server is killed with SIGKILL, ten times, and recovers from its WAL.
//   - The primary is killed and a standby promoted, a synchronous one, and an asynchronous one that has lost WAL.
//   - A shard is dumped by pg_dump while it makes IDs, and restored into another database, where it goes on.
//   - A server is restored from a base backup and a WAL archive to its state of ten seconds ago.
//   - Statements are cancelled and sessions ended at random, many of them in catch_up_to_clock.
//   - Of 200 sessions, dozens at a time are stopped in mid-call by SIGSTOP for a second.
//
// Each test checks that its fault happened: that the server's clock stepped, that the new primary had lost IDs that
// clients hold, that sessions were in mid-call.
//
// # Checks
//
// Every ID that a client received is in the test's history, including those of statements that failed later. None
// may occur twice. IDs rise within a session, and each ID is larger than all IDs that any session had received for its
// shard when the call began, so IDs rise across faults too. The shard in the ID is the session's. Its time is near the
// server's clock during the call: from 15 ms behind to 5 ms ahead, plus the exceptions that engine.sql names. After a
// clock stepped back, it may be as far ahead as the clock has ever been.
//
// The cancelled calls leave no lock of the engine behind, and none of them took longer than a second.
//
// # How to run it
//
// go test ./... runs a short form, with fewer and shorter faults. The full form:
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
// Faults hit the engine at random points. For exact points, stops.sql replaces the clock, nextval, setval and others by
// functions at which a test can stop a session, such as a setter just before its setval. TestMutants removes one safeguard
// of the engine at a time, and expects an ID given twice; with all safeguards it expects none. The package model runs
// all interleavings of a small model.
//
// The suite can fail: three of its tests, which always run, cause the same faults for the published function and for a
// bare sequence, and expect that the checker finds IDs given twice.
package prove
