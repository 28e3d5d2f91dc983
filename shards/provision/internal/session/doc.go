// Package session opens sessions on hosts, and runs scripts there in transactions that do not block other sessions for
// long.
package session
