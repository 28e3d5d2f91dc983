// Package extensions creates the extensions of a map on its hosts, and compares those that hosts have.
package extensions
