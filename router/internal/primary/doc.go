// Package primary knows whether a host is up, and which of its addresses is the primary.
//
// A host with one address is probed only while requests wait for it and nothing comes. A host with several addresses has
// each of them probed once a second, and more often while none is known to be the primary. The prober of an address has a
// connection of its own.
//
// Connections that are made with [Watch.BeforeConnect] go to the primary, and are closed when it is the primary no more.
// The owner of the connections asks [Watch.Admit] before each request, and reports what it learns by [Watch.Failed],
// [Watch.Connected] and [Watch.Refused].
package primary
