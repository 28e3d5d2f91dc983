// Package primary finds out whether a host is up, and which of its addresses is the primary.
//
// A host with one address is probed only while requests wait and it sends nothing. If a host has several addresses, each is
// probed once a second, and more often while the primary is unknown. The prober of an address has its own connection.
//
// Connections that use [Watch.BeforeConnect] go to the primary. The watch closes them when their server is no longer the
// primary. The owner of the connections calls [Watch.Admit] before each request, and reports results with [Watch.Failed],
// [Watch.Connected] and [Watch.Refused].
package primary
