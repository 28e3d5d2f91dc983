package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Writes the man pages of all commands",
		Long:  `Writes a man page for each command into a directory, which is made if need be: man -l man/kiloshard-create.1`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return fmt.Errorf("cannot make the directory of man pages: %w", err)
			}
			now := time.Now().UTC()
			header := &doc.GenManHeader{Section: "1", Source: "kiloshard " + programVersion(), Manual: "Kiloshard", Date: &now}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, header, args[0])
		},
	}
}
