// Package atomicfile replaces files as a whole: a reader sees the old or the new text, also after a crash.
package atomicfile
