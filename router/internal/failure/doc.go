// Package failure says what an error means for a statement: whether it was sent, whether it may have run, and whether it
// can be sent again. It holds the sentinels that package router exports, and decides by the error alone.
package failure
