package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// completions has the shell complete the flags that name hosts, shards and versions, in all commands below.
func (a *app) completions(cmd *cobra.Command) {
	for name, complete := range map[string]cobra.CompletionFunc{
		"host": a.completeHost, "shard": a.completeShard, "shards": a.completeShard, "to": a.completeVersion, "generator": a.completeGenerator,
	} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only for a flag that is not there, or twice
		}
	}
	for _, sub := range cmd.Commands() {
		a.completions(sub)
	}
}

// completionMap returns the map, nil where there is none to be had.
func (a *app) completionMap(cmd *cobra.Command) (shards.Config, *shards.Map) {
	if !cmd.Flags().Changed("config") {
		a.configFile = a.findConfig(cmd)
	}
	cfg, m, err := a.loadMap(cmd.Context())
	if err != nil {
		return cfg, nil
	}
	return cfg, m
}

func (a *app) completeHost(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	if _, m := a.completionMap(cmd); m != nil {
		for _, host := range m.Hosts() {
			found = append(found, cobra.CompletionWithDesc(host.Name, count(len(m.NumbersOn(host.Name)), "shard")))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeShard offers the ranges of shards that are on one host, which are few, and of which one may take any number.
func (a *app) completeShard(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
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

func (a *app) completeVersion(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
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

func (a *app) completeGenerator(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
