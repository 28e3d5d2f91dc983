package shards

import (
	"fmt"
	"log/slog"
)

// Format prints the config without secrets, for every verb: without the DSNs of hosts and store, and without the
// arguments of PasswordCommand. As with a [Host], package fmt prints a config in an unexported field of another struct
// field by field.
func (c Config) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), c.shown())
}

// LogValue keeps a logger from printing secrets.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c.shown())) }

// shownConfig is a config without methods.
type shownConfig Config

func (c Config) shown() shownConfig {
	if len(c.PasswordCommand) > 1 {
		c.PasswordCommand = []string{c.PasswordCommand[0], "…"}
	}
	return shownConfig(c)
}
