package lint

// rule is the part of a warning that does not depend on the statement.
type rule struct {
	name    string
	kind    Kind
	effect  string // may have a verb for fmt
	instead string
}

const (
	ownFile   = "in a file of its own, marked ---- tern: disable-tx ----"
	notValid  = "add it NOT VALID, and VALIDATE CONSTRAINT in a later file, which blocks neither reads nor writes"
	viaIndex  = "CREATE UNIQUE INDEX CONCURRENTLY " + ownFile + ", then ADD CONSTRAINT … USING INDEX"
	newColumn = "add a column without it, fill it in batches, then make services use it"
)

// Indexes.
var (
	createIndexRule = rule{
		"create-index", Locks, "SHARE lock on the table until the index is built: blocks writes",
		"CREATE INDEX CONCURRENTLY, " + ownFile,
	}
	dropIndexRule = rule{
		"drop-index", Locks, "ACCESS EXCLUSIVE lock on the table: blocks reads and writes, from when it begins to wait for running queries",
		"DROP INDEX CONCURRENTLY, " + ownFile,
	}
	reindexRule = rule{
		"reindex", Locks, "SHARE lock on the table and ACCESS EXCLUSIVE on its index until it is built: blocks writes, and reads that plan with the index",
		"REINDEX CONCURRENTLY, " + ownFile,
	}
)

// ALTER TABLE.
var (
	columnTypeRule = rule{
		"alter-column-type", Rewrites, "ACCESS EXCLUSIVE lock while table and indexes are rewritten: blocks reads and writes, unless the old type is " +
			"binary compatible, as varchar is to text and to a longer varchar",
		"add a column of the new type, write both, fill it in batches, then switch services over",
	}
	volatileDefaultRule = rule{
		"add-column-volatile-default", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten, since %s may return another value for each row: blocks reads and writes",
		"add the column without a default, then SET DEFAULT, then fill old rows in batches; a constant or now() needs no rewrite",
	}
	serialColumnRule = rule{
		"add-column-serial", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten to number its rows: blocks reads and writes",
		newColumn,
	}
	identityColumnRule = rule{
		"add-column-identity", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten to number its rows: blocks reads and writes",
		newColumn,
	}
	storedColumnRule = rule{
		"add-column-stored", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten to compute the column: blocks reads and writes",
		"add a plain column and a trigger that fills it, then fill old rows in batches",
	}
	notNullColumnRule = rule{
		"add-column-not-null", Fails, "fails where the table has rows: the column is null in all of them",
		"give it a constant default, or add it without NOT NULL and fill it first",
	}
	addCheckRule = rule{
		"add-check", Locks, "ACCESS EXCLUSIVE lock while all rows are checked: blocks reads and writes", notValid,
	}
	addForeignKeyRule = rule{
		"add-foreign-key", Locks, "SHARE ROW EXCLUSIVE lock on both tables while all rows are checked: blocks writes to both", notValid,
	}
	addPrimaryKeyRule = rule{
		"add-primary-key", Locks, "ACCESS EXCLUSIVE lock until its index is built: blocks reads and writes", viaIndex,
	}
	addUniqueRule = rule{
		"add-unique", Locks, "ACCESS EXCLUSIVE lock until its index is built: blocks reads and writes", viaIndex,
	}
	addExcludeRule = rule{
		"add-exclude", Locks, "ACCESS EXCLUSIVE lock until its index is built and all rows are checked: blocks reads and writes",
		"there is no way to build it while others write: create it with the table, or at a quiet time",
	}
	setNotNullRule = rule{
		"set-not-null", Locks, "ACCESS EXCLUSIVE lock while all rows are checked, unless a valid CHECK (… IS NOT NULL) proves them: blocks reads and writes",
		"add CHECK (… IS NOT NULL) NOT VALID, VALIDATE it in a later file, then SET NOT NULL and drop the check",
	}
	validateRule = rule{
		"validate-same-transaction", Locks, "the lock of the ADD CONSTRAINT before it is held while all rows are checked: NOT VALID gains nothing",
		"VALIDATE CONSTRAINT in a later file",
	}
	setExpressionRule = rule{
		"set-expression", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten to compute the column: blocks reads and writes",
		newColumn,
	}
	setTablespaceRule = rule{
		"set-tablespace", Rewrites, "ACCESS EXCLUSIVE lock while all data is copied: blocks reads and writes",
		"pg_repack, or a new table that is filled in batches",
	}
	setLoggedRule = rule{
		"set-logged", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten: blocks reads and writes",
		"create a new table of the right kind, and fill it in batches",
	}
	setAccessMethodRule = rule{
		"set-access-method", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten: blocks reads and writes",
		"a new table that is filled in batches",
	}
	dropColumnRule = rule{
		"drop-column", Breaks, "running services that still name the column fail; its data is gone",
		"drop it in a later release, when no service uses it",
	}
)

// Whole tables.
var (
	dropTableRule = rule{
		"drop-table", Breaks, "running services that still use it fail; its data is gone",
		"drop it in a later release, when no service uses it",
	}
	renameTableRule = rule{
		"rename-table", Breaks, "running services that still use the old name fail",
		"keep the name; or leave a view under the old one until no service uses it",
	}
	renameColumnRule = rule{
		"rename-column", Breaks, "running services that still use the old name fail",
		"keep the name; or add a column, write both, and drop the old one in a later release",
	}
	setSchemaRule = rule{
		"set-schema", Breaks, "running services no longer find it, and kiloshard does not either, since it looks in the shard's schema",
		"keep it in the shard's schema",
	}
	vacuumFullRule = rule{
		"vacuum-full", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten: blocks reads and writes",
		"VACUUM, or pg_repack",
	}
	clusterRule = rule{
		"cluster", Rewrites, "ACCESS EXCLUSIVE lock while the table is rewritten: blocks reads and writes",
		"pg_repack",
	}
	lockTableRule = rule{
		"lock-table", Locks, "%s lock until the file's transaction ends: blocks %s",
		"let each statement take the lock that it needs",
	}
	truncateRule = rule{
		"truncate", Locks, "ACCESS EXCLUSIVE lock until the file's transaction ends: blocks reads and writes; all rows are gone",
		"DELETE in batches, or a new table",
	}
	sequenceBackRule = rule{
		"sequence-back", Locks, "SHARE ROW EXCLUSIVE lock on the sequence until the file's transaction ends: blocks nextval, and with it inserts. Where %s is " +
			"rolled back, the sequence is what it was before: values drawn after it in the transaction come again",
		"create a sequence once, in its final form; kiloshard id advance moves sequences that make IDs ahead",
	}
	setvalRule = rule{
		"setval", Breaks, "moves the sequence at once, even if the transaction is rolled back; a sequence that moves back repeats its values",
		"kiloshard id advance moves sequences that make IDs ahead, and never back",
	}
	createTriggerRule = rule{
		"create-trigger", Locks, "SHARE ROW EXCLUSIVE lock until the file's transaction ends: blocks writes, from when it begins to wait for running ones",
		"put it into a file of its own, and run with --lock-timeout",
	}
	refreshRule = rule{
		"refresh-materialized-view", Locks, "ACCESS EXCLUSIVE lock while it is filled: blocks reads",
		"REFRESH MATERIALIZED VIEW CONCURRENTLY, which needs a unique index on it",
	}
	updateAll = rule{
		"update-without-where", Locks, "locks every row until the file's transaction ends, and leaves as many dead rows: blocks writes to them",
		"update in batches, outside of a migration",
	}
	deleteAll = rule{
		"delete-without-where", Locks, "locks every row until the file's transaction ends, and leaves as many dead rows: blocks writes to them",
		"delete in batches, outside of a migration",
	}
)

// What leaves the shard.
var (
	leavesShard = rule{
		"leaves-shard", Fails, "changes %s, which is outside the shard: all shards of a host would share it, and migrate up refuses it",
		"names without a schema, which mean the shard's own; what all shards of a host share goes into a file of its own with the first line \"-- kiloshard: once a host\"",
	}
	extensionRule = rule{
		"create-extension", Fails, "makes extension %s in the first shard that runs it, where the others do not find it: migrate up refuses it",
		"its name in the config's list of extensions, and kiloshard create, which makes it on each host",
	}
	extensionTwice = rule{
		"create-extension", Fails, "fails: each host has extension %s, as the config says",
		"CREATE EXTENSION IF NOT EXISTS, or none",
	}
	byNameRule = rule{
		"catalog-by-name", Fails, "looks for a name in %s, where the objects of all shards are: it finds those of other shards on the host",
		"to_regclass('…') and to_regtype('…'), which find the shard's own; or a condition such as relnamespace = current_schema()::regnamespace",
	}
	staysRule = rule{
		"cannot-move", Stays, "makes %s, which keeps its shard on its host: a move refuses it, and new shards run all files instead of being made from a snapshot",
		"plain tables, types and functions, if shards will move; an extension can bring the rest",
	}
	bareNamesRule = rule{
		"bare-names", Stays, "%s calls %s(), which names %s without its schema: a move and a restore of the shard do not find it, since they write rows with an empty search_path",
		"SET search_path FROM CURRENT in the CREATE FUNCTION, which keeps the shard's own; or {{.schema}} before the name",
	}
	searchPathRule = rule{
		"search-path", Fails, "the statements after it create objects in another schema than the shard's: migrate up refuses these",
		"no search_path: kiloshard sets it to the shard's schema before each file",
	}
)

// What cannot work.
var (
	otherShard = rule{
		"shard-by-name", Fails, "names %s whichever shard it runs in: other shards would touch that one, or find that it does not exist on their host",
		"names without a schema, which mean the shard's own; or {{.schema}}",
	}
	narrowRule = rule{
		"narrow-id", Fails, "column %s gets IDs and cannot hold them: integer overflows, real and double precision round to the ID of another row",
		"bigint, since an ID has 64 bits",
	}
	enumValueRule = rule{
		"enum-value", Fails, "fails if %q is the enum value that an ALTER TYPE of this file adds: Postgres refuses a new value until its transaction is committed",
		"ALTER TYPE … ADD VALUE in a file of its own, before this one",
	}
	needsNoTransaction = rule{
		"not-in-transaction", Fails, "fails: %s cannot run inside a transaction",
		"mark the file ---- tern: disable-tx ----",
	}
)
