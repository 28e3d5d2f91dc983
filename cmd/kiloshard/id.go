package main

import "github.com/spf13/cobra"

func (a *app) idCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Makes IDs and takes them apart", RunE: needsCommand}
	cmd.AddCommand(a.idNextCommand(), a.idDecodeCommand(), a.idEncodeCommand(), a.idAdvanceCommand())
	return cmd
}
