package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) initCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Writes a commented config",
		Long: `Writes a commented config, kiloshard.yaml or what -c says, to be edited: the hosts and
their DSNs above all. The epoch is today's midnight, UTC. A file that is there already
stays, unless --force says otherwise.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			file, err := os.OpenFile(a.configFile, flags, 0o600) // it may come to hold passwords
			if errors.Is(err, fs.ErrExist) {
				return usagef("%s exists: expected no such file, or --force to overwrite it", a.configFile)
			}
			if err != nil {
				return fmt.Errorf("cannot write the config: %w", err)
			}
			_, err = file.Write(shards.Template(shards.Config{Epoch: time.Now().UTC().Truncate(24 * time.Hour)}))
			if err := errors.Join(err, file.Close()); err != nil {
				return fmt.Errorf("cannot write the config: %w", err)
			}
			return a.print(map[string]string{"written": a.configFile}, func() {
				a.say("%s is written. Edit its hosts, then: kiloshard create", a.configFile)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite a file that is there already")
	return cmd
}
