package main

import "github.com/spf13/cobra"

// topics are pages of help that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "exit-codes", Short: "What the exit codes mean",
			Long: `Exit codes of all commands:

  0  done
  1  failed: nothing is known to be done, or verify and its like have found something
  2  wrong usage or config: nothing was begun
  3  partly done and resumable: the same command again takes up what is left

The first Ctrl-C finishes what is under way and begins nothing else, the second cancels it on the servers;
the exit code is 1 or 3 then.`,
		},
		{
			Use: "environment", Short: "The variables that are read",
			Long: `Variables of the environment that the commands read:

  KILOSHARD_CONFIG         the config file, where there is no -c
  KILOSHARD_STORE_TIMEOUT  how long the map's store may take to answer, such as 5s
  NO_COLOR, CLICOLOR_FORCE no colour on a terminal; colour also where there is none
  COLUMNS                  how wide a line may be, where standard output is no terminal
  VISUAL, EDITOR           the editor of map edit
  KILOSHARD_POSTGRES_DSN, KILOSHARD_POSTGRES_IMAGE, KILOSHARD_POSTGRES_DIR
                           the servers of bench and demo
  PGPASSWORD, PGPASSFILE, PGSERVICEFILE and the like
                           as for psql, where a DSN leaves them open
  ${NAME}                  any variable that the config names in a DSN`,
		},
		{
			Use: "config", Short: "The config file, and where it is looked for",
			Long: `The config is the file of -c, else that of KILOSHARD_CONFIG, else kiloshard.yaml in this directory or in the
nearest one above that has it. kiloshard init writes one, with a comment for each field.

It holds the map: the cluster's name, how many shards there are, the epoch, the layout of IDs, the strategy,
the hosts, and which shards live where. With a store other than file it says only where the map is kept. Names
of files in it are beside the config. ${NAME} in a DSN stands for a variable of the environment.`,
		},
		{
			Use: "json", Short: "What -o json prints",
			Long: `With -o json a command prints one document on standard output; progress and warnings go to standard error.
Names of fields, and what they hold, stay what they are from release to release; fields may be added.

The same everywhere: "shards", and all that says which shards, is a list of numbers, also of none and of one;
"shard_count" is how many there are, and the "map" of map show is as the config, whose "shards" says that;
times are RFC 3339 in UTC, durations are seconds;
"failed" is a list of shards with shard, schema, host, error, and of migrations sqlstate, file, line and
statement; "not_attempted" are the shards that were left alone, which the same command takes up again.`,
		},
	}
}
