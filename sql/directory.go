package sql

// DirectoryTables are the tables of a directory in a shard's schema, with their columns as Postgres describes them.
var DirectoryTables = map[string]string{
	"kiloshard_directory": "key text, shard integer, since timestamp with time zone",
	"kiloshard_usage":     "one boolean, keys bigint",
}

// UsageTables are the tables of a strategy that counts keys but stores no entries.
var UsageTables = map[string]string{"kiloshard_usage": DirectoryTables["kiloshard_usage"]}

// Directory returns the script that creates the tables of a directory in a shard's schema if they are missing. The
// comment of kiloshard_directory holds the version.
func Directory(number int, schema string) string {
	script := func(number int, schema string) string {
		return render("directory.sql", shardData{Number: number, Schema: schema})
	}
	return withVersion(script(number, schema), "TABLE "+schema+".kiloshard_directory", versionOf(script(0, "shard")))
}

// Usage returns the script that creates the table of [UsageTables] in a shard's schema if it is missing. The table's
// comment holds the version.
func Usage(number int, schema string) string {
	script := func(number int, schema string) string {
		return render("usage.sql", shardData{Number: number, Schema: schema})
	}
	return withVersion(script(number, schema), "TABLE "+schema+".kiloshard_usage", versionOf(script(0, "shard")))
}
