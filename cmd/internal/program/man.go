package program

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Writes the man pages of all commands and help topics",
		Long:  `Writes a man page for each command and help topic into a directory, and makes the directory if it is missing: man -l man/kiloshard-create.1`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return fmt.Errorf("cannot make the directory of man pages: %w", err)
			}
			now := time.Now().UTC()
			header := &doc.GenManHeader{Section: "1", Source: "kiloshard " + Version(), Manual: "Kiloshard", Date: &now}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return err
			}
			for _, topic := range help.All() { // which GenManTree leaves out
				page, _, err := root.Find([]string{topic.Name})
				if err != nil {
					return err
				}
				_, page.Long, _ = strings.Cut(topic.Markdown, "\n") // GenMan reads Markdown
				if err := doc.GenManTree(page, header, args[0]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
