// Package helperschema has the helper schema of a host: its settings, the functions that make IDs, the strategy that it
// records, and the ledger of migrations.
package helperschema
