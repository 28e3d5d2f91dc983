package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// Completions has the shell complete the flags that name hosts, shards and versions, in all commands below.
func (a *App) Completions(cmd *cobra.Command) {
	for name, complete := range map[string]cobra.CompletionFunc{
		"host": a.CompleteHost, "shard": a.CompleteShard, "shards": a.CompleteShard, "to": a.CompleteVersion, "generator": a.completeGenerator,
	} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only for a flag that is not there, or twice
		}
	}
	for _, sub := range cmd.Commands() {
		a.Completions(sub)
	}
}

// BeforeCompletion finds and reads the config, since cobra completes words without the steps before a command. It returns false if the config cannot
// be read, or if its password_command would have to run to read the map: TAB runs no program.
func (a *App) BeforeCompletion(cmd *cobra.Command) (shards.Config, bool) {
	if !cmd.Flags().Changed("config") {
		a.ConfigFile = a.findConfig(cmd)
	}
	file, err := a.LocalOffline()
	return file, err == nil && (!file.Remote() || len(file.PasswordCommand) == 0)
}

// completionMap returns the map, or nil when it cannot be loaded.
func (a *App) completionMap(cmd *cobra.Command) (shards.Config, *shards.Map) {
	file, ok := a.BeforeCompletion(cmd)
	if !ok {
		return shards.Config{}, nil
	}
	cfg, m, err := a.mapOffline(cmd.Context(), file)
	if err != nil {
		return cfg, nil
	}
	return cfg, m
}

// CompleteHost offers the hosts of the map.
func (a *App) CompleteHost(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	if _, m := a.completionMap(cmd); m != nil {
		for _, host := range m.Hosts() {
			found = append(found, cobra.CompletionWithDesc(host.Name, Count(len(m.NumbersOn(host.Name)), "shard")))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteShard offers the ranges of shards on each host, which are few; any number in them is a shard.
func (a *App) CompleteShard(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	if _, m := a.completionMap(cmd); m != nil && len(args) == 0 {
		for _, host := range m.Hosts() {
			for _, r := range shards.SetOf(m.NumbersOn(host.Name)...).Ranges() {
				found = append(found, cobra.CompletionWithDesc(shards.SetOfRanges(r).String(), "on "+host.Name))
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteVersion offers the versions that the directory of migrations has files for.
func (a *App) CompleteVersion(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	if cfg, m := a.completionMap(cmd); m != nil && cfg.MigrationsDir() != "" {
		names, err := migrate.FileNames(os.DirFS(cfg.MigrationsDir()))
		if err == nil {
			for i, name := range names {
				found = append(found, cobra.CompletionWithDesc(fmt.Sprint(i+1), name))
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (a *App) completeGenerator(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	if _, m := a.completionMap(cmd); m != nil {
		for _, g := range m.Generators() {
			for _, name := range g.Names {
				found = append(found, cobra.CompletionWithDesc(name, string(g.Kind)))
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
