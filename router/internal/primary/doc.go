// Package primary knows whether a host is up, and which of its addresses is the primary.
//
// A host with one address is probed only while requests wait and it sends nothing. Each address of a host with several is
// probed once a second, and more often while none is known to be the primary. The prober of an address has its own
// connection.
//
// Connections that are made with [Watch.BeforeConnect] go to the primary, and are closed when it is no longer the primary.
// The owner of the connections calls [Watch.Admit] before each request, and reports what it learns by [Watch.Failed],
// [Watch.Connected] and [Watch.Refused].
package primary
