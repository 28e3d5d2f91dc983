// Package failure classifies errors of statements: whether the statement was sent, whether it may have run, and whether it
// can be retried. It decides by the error alone. It also defines sentinels that package router exports.
package failure
