// Package document turns the documents of a store into maps, and new maps into documents. It checks that a document
// names no password, and that a document from a store names no variable, file or host that this machine does not allow.
package document
