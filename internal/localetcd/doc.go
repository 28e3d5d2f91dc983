// Package localetcd has etcd servers on this machine, thrown away afterwards: for benchmarks and tests.
//
// A server is a process of its own, so that it can be killed. No binary of etcd is needed: the process runs a command that
// the caller names, such as a copy of the caller's own program, and that calls [Serve].
//
// A server listens on 127.0.0.1 only and keeps its data in a directory of its own, with fsync. It ends with the process
// that started it, because its standard input ends then.
package localetcd
