-- Records what decides the shard of a key: the strategy of the map, which every command and service compares with its own.
ALTER TABLE kiloshard.settings ADD COLUMN IF NOT EXISTS keys text;
UPDATE kiloshard.settings SET keys = {{literal .Keys}} WHERE cluster = {{literal .Cluster}} AND keys IS DISTINCT FROM {{literal .Keys}};
