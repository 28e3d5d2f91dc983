// Package ids is kiloshard-lab bench ids: ways to make IDs, and tables keyed by them.
package ids
