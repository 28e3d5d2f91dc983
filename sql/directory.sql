-- The directory in shard {{.Number}}: where keys are. A key's entry stands in the shard that the hash of the key names, so
-- that no one table has all of them, and moves with that shard.
CREATE TABLE IF NOT EXISTS {{.Schema}}.kiloshard_directory (
  key   text COLLATE pg_catalog."C" PRIMARY KEY, -- a number as its decimal text
  shard int NOT NULL,                            -- where the key's rows are
  since timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
);

{{template "usage.sql" .}}