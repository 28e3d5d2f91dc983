package main

import (
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// The exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong usage or config
	exitPartly = 3 // partly done and resumable
)

// usageError is an error in how the command was typed, or in the config.
type usageError struct{ error }

// usage makes an error a [usageError].
func usage(err error) error { return usageError{err} }

// usagef is fmt.Errorf for a [usageError].
func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// partlyError is an error after which some of the work is done.
type partlyError struct{ error }

func (e partlyError) Unwrap() error { return e.error }

// partly makes an error one after which some of the work is done.
func partly(err error) error { return partlyError{err} }

// errSilent fails a command that has printed already what is wrong.
var errSilent = errors.New("printed already")

// exit prints an error and returns the exit code that goes with it.
func (a *app) exit(err error) int {
	if err == nil {
		return exitDone
	}
	if !errors.Is(err, errSilent) {
		a.complain("kiloshard:", red, " "+err.Error())
	}
	var (
		wrong   usageError
		field   *shards.FieldError
		change  *shards.ChangeError
		some    partlyError
		partial *shards.PartialError
	)
	switch {
	case !a.started:
		fmt.Fprintln(a.stderr, "kiloshard: see kiloshard help")
		return exitUsage
	case errors.As(err, &wrong), errors.As(err, &field), errors.As(err, &change):
		return exitUsage
	case errors.As(err, &some):
		return exitPartly
	case errors.As(err, &partial) && partial.Done.Len() > 0:
		return exitPartly
	}
	return exitFailed
}
