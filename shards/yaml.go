package shards

import (
	"slices"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// YAML returns the config, its defaults filled in, as kiloshard.yaml. [Parse] reads it back as an
// equal config. DSNs are as written, with their ${NAME} variables. A map that is kept in a
// store other than a file is written as the store keeps it, without Store. The error is the
// [FieldError] of a config that [Config.Map] refuses.
func (c Config) YAML() ([]byte, error) {
	if c.Remote() {
		c.Store = c.Store.withDefaults()
		if err := c.checkBootstrap(); err != nil {
			return nil, err
		}
		return configfile.Write(c.bootstrapParts(), nil), nil
	}
	m, err := c.Map()
	if err != nil {
		return nil, err
	}
	return configfile.Write(m.config.parts(), nil), nil
}

// parts returns the top-level fields of a config with its defaults filled in, as kiloshard.yaml or a store has them.
func (c Config) parts() []configfile.Field {
	if c.Store.isRemote() {
		c.Store = Store{}
	}
	return format.Fields(c)
}

// bootstrapParts are the fields of a config without a map.
func (c Config) bootstrapParts() []configfile.Field {
	return slices.DeleteFunc(format.Fields(c), func(f configfile.Field) bool { return !slices.Contains(bootstrapFields, f.Name) })
}
