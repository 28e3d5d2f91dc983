// Package configtext has the prose of kiloshard.yaml: the comments of a new file, and what messages say a field may be.
package configtext
