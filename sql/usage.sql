-- The number of keys in this shard, wherever their entries are: one row, locked while a new key is counted. New keys of
-- the same shard wait for each other there.
CREATE TABLE IF NOT EXISTS {{.Schema}}.kiloshard_usage (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL CHECK (keys >= 0)
) WITH (fillfactor = 10); -- so that the row's next version finds room beside it

INSERT INTO {{.Schema}}.kiloshard_usage (keys) VALUES (0) ON CONFLICT (one) DO NOTHING;

