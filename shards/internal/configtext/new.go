package configtext

import (
	"slices"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// New returns a new kiloshard.yaml: its fields with a comment before each, then an example of each optional field
// that it leaves out.
func New(fields []configfile.Field, schemaPrefix string, maxShards int) []byte {
	return commented(fields, comments(schemaPrefix, maxShards), "shared", "extensions", "password_command", "generators", "types")
}

// NewRemote returns a new kiloshard.yaml that says only where the map is, as [New] does.
func NewRemote(fields []configfile.Field) []byte {
	return commented(fields, remoteComments, "password_command")
}

func commented(fields []configfile.Field, comments map[string]string, optional ...string) []byte {
	text := configfile.Comment("The config of a Kiloshard cluster. All commands read it, and change it only where they say so.")
	text += string(configfile.Write(fields, comments))
	for _, name := range optional {
		if !slices.ContainsFunc(fields, func(f configfile.Field) bool { return f.Name == name }) {
			text += "\n" + configfile.Comment(examples[name])
		}
	}
	return []byte(text)
}
