// Package mapsql derives from a map the names and parameters of the SQL objects on its hosts. It opens no connections.
package mapsql
