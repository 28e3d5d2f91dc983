package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
)

// The exit codes of every command.
const (
	ExitDone   = 0
	ExitFailed = 1
	exitUsage  = 2 // wrong usage or config
	ExitPartly = 3 // partly done and resumable
)

// usageError is an error in how the command was typed, or in the config.
type usageError struct{ error }

// Usage makes an error a [usageError].
func Usage(err error) error { return usageError{err} }

// Usagef is fmt.Errorf for a [usageError].
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// partlyError is an error after which some of the work is done.
type partlyError struct{ error }

func (e partlyError) Unwrap() error { return e.error }

// Partly makes an error one after which some of the work is done.
func Partly(err error) error { return partlyError{err} }

// ErrSilent fails a command that has already printed its errors.
var ErrSilent = errors.New("printed already")

// Exit prints an error of a command and returns the exit code that goes with it.
func (a *App) Exit(cmd *cobra.Command, err error) int {
	if out, ok := a.Stdout.(cleaned); ok && out.reader.failed() != nil {
		err = errors.Join(err, fmt.Errorf("standard output: %w", out.reader.failed()))
	}
	if err == nil {
		return ExitDone
	}
	if !errors.Is(err, ErrSilent) {
		ctx := cmd.Context() // nil of a command that was not run
		a.complain(cmd.Root().Name()+":", red, " "+strings.Join(GroupHosts(texts(err, ctx != nil && ctx.Err() != nil)), "\n"))
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
		fmt.Fprintf(a.Stderr, "%s: see %s --help\n", cmd.Root().Name(), cmd.CommandPath())
		return exitUsage
	case errors.As(err, &wrong), errors.As(err, &field), errors.As(err, &change):
		return exitUsage
	case errors.As(err, &some):
		return ExitPartly
	case errors.As(err, &partial) && partial.Done.Len() > 0:
		return ExitPartly
	}
	return ExitFailed
}

// texts returns what each error says of those that were joined, by a command that is interrupted or not.
func texts(err error, isInterrupted bool) []string {
	if partial, ok := err.(*shards.PartialError); ok && len(partial.Failed) == 0 { //nolint:errorlint // one that is wrapped has more to say
		return []string{Told(partial).Error()}
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{said(err, isInterrupted)}
	}
	if joined := errors.Join(many.Unwrap()...); joined == nil || joined.Error() != err.Error() {
		return []string{err.Error()} // it says more than they do
	}
	var all []string
	for _, err := range many.Unwrap() {
		all = append(all, texts(err, isInterrupted)...)
	}
	return all
}
