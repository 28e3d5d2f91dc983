// Package localetcd runs temporary etcd servers on this machine, for benchmarks and tests.
//
// Each server is a separate process, so it can be killed. No etcd binary is needed: the process runs a command that the
// caller configures, such as the caller's own program, and the command calls [Serve].
//
// A server listens on 127.0.0.1 only, and stores its data in its own directory, with fsync. It exits when the process that
// started it exits, because its standard input is closed then.
package localetcd
