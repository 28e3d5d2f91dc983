-- How many keys are in this shard, wherever their entries are: one row, locked for as long as a new key takes to be
-- counted. New keys of one shard wait for each other there, those of different shards do not.
CREATE TABLE IF NOT EXISTS {{.Schema}}.kiloshard_usage (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL CHECK (keys >= 0)
) WITH (fillfactor = 10); -- so that the row's next version finds room beside it

INSERT INTO {{.Schema}}.kiloshard_usage (keys) VALUES (0) ON CONFLICT (one) DO NOTHING;

