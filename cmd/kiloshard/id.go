package main

import "github.com/spf13/cobra"

func (a *app) idCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Makes IDs and takes them apart", Args: cobra.NoArgs}
	cmd.AddCommand(a.idNextCommand(), a.idDecodeCommand(), a.idEncodeCommand())
	return cmd
}
