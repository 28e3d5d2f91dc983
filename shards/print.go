package shards

import (
	"fmt"
	"log/slog"
)

// Format prints the config without what may be secret, for every verb: hosts and store leave out their DSNs, and of
// PasswordCommand there is only the program. As for a [Host], package fmt cannot be kept from printing a config in an unexported
// field of another struct field by field.
func (c Config) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), c.shown())
}

// LogValue keeps a logger from printing what may be secret.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c.shown())) }

// shownConfig is a config without methods.
type shownConfig Config

func (c Config) shown() shownConfig {
	if len(c.PasswordCommand) > 1 {
		c.PasswordCommand = []string{c.PasswordCommand[0], "…"}
	}
	return shownConfig(c)
}
