-- The directory in shard {{.Number}}: which shard holds a key. The hash of the key names the shard that stores its entry, so
-- entries are spread over all shards and move with them.
CREATE TABLE IF NOT EXISTS {{.Schema}}.kiloshard_directory (
  key   text COLLATE pg_catalog."C" PRIMARY KEY, -- a number as its decimal text
  shard int NOT NULL,                            -- where the key's rows are
  since timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
);

{{template "usage.sql" .}}