-- The directory in shard {{.Number}}: where keys are. A key's entry stands in the shard that the hash of the key names, so
-- that no one table has all of them, and moves with that shard.
CREATE TABLE IF NOT EXISTS {{.Schema}}.kiloshard_directory (
  key   text COLLATE pg_catalog."C" PRIMARY KEY, -- a number as its decimal text
  shard int NOT NULL,                            -- where the key's rows are
  since timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
);

-- How many keys are in this shard, wherever their entries are: one row, locked for as long as a new key takes to be
-- counted. New keys of one shard wait for each other there, those of different shards do not.
CREATE TABLE IF NOT EXISTS {{.Schema}}.kiloshard_usage (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL CHECK (keys >= 0)
) WITH (fillfactor = 10); -- so that the row's next version finds room beside it

INSERT INTO {{.Schema}}.kiloshard_usage (keys) VALUES (0) ON CONFLICT (one) DO NOTHING;

