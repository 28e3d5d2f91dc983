-- The functions that take IDs apart.

{{if .TimeBits -}}
-- id_time returns when an ID was made, to the millisecond. Seconds and milliseconds are added
-- separately, since Postgres multiplies an interval by a double, which is not exact enough for both.
CREATE OR REPLACE FUNCTION kiloshard.id_time(id bigint) RETURNS timestamp with time zone
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT pg_catalog.timezone('UTC', {{literal .EpochPlain}}::timestamp without time zone
  OPERATOR(pg_catalog.+) (((id OPERATOR(pg_catalog.>>) {{.LowBits}}) OPERATOR(pg_catalog./) 1000) OPERATOR(pg_catalog.*) interval '1 second')
  OPERATOR(pg_catalog.+) (((id OPERATOR(pg_catalog.>>) {{.LowBits}}) OPERATOR(pg_catalog.%) 1000) OPERATOR(pg_catalog.*) interval '1 millisecond')) $kiloshard$;
{{- else -}}
-- id_time returns NULL, since IDs without a time do not hold it.
CREATE OR REPLACE FUNCTION kiloshard.id_time(id bigint) RETURNS timestamp with time zone
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT NULL::timestamp with time zone $kiloshard$;
{{- end}}

-- id_shard returns the number of the shard that made an ID.
CREATE OR REPLACE FUNCTION kiloshard.id_shard(id bigint) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT ((id OPERATOR(pg_catalog.>>) {{.BelowShard}}) OPERATOR(pg_catalog.&) {{.ShardMask}})::int $kiloshard$;
{{- if .TypeBits}}

-- id_type returns the type that an ID was made with.
CREATE OR REPLACE FUNCTION kiloshard.id_type(id bigint) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT ((id OPERATOR(pg_catalog.>>) {{.SequenceBits}}) OPERATOR(pg_catalog.&) {{.TypeMask}})::int $kiloshard$;
{{- end}}

-- id_sequence returns {{if .TimeBits}}an ID's slot within its millisecond{{else}}the sequence value in an ID{{end}}.
CREATE OR REPLACE FUNCTION kiloshard.id_sequence(id bigint) RETURNS {{.SequenceType}}
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT (id OPERATOR(pg_catalog.&) {{.SlotMask}})::{{.SequenceType}} $kiloshard$;

{{if .TimeBits -}}
-- id_floor returns the smallest ID of a millisecond, for scans such as
-- WHERE id >= kiloshard.id_floor(now() - interval '1 day'). Before the epoch it is 0. From
-- {{.EndText}} on, where there are no IDs, it is the largest bigint.
CREATE OR REPLACE FUNCTION kiloshard.id_floor(at timestamp with time zone) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT CASE
  WHEN at OPERATOR(pg_catalog.<) {{literal .EpochText}}::timestamp with time zone THEN 0
  WHEN at OPERATOR(pg_catalog.>=) {{literal .EndText}}::timestamp with time zone THEN 9223372036854775807
  ELSE (pg_catalog.floor(EXTRACT(epoch FROM pg_catalog.timezone('UTC', at)) OPERATOR(pg_catalog.*) 1000)::bigint
    OPERATOR(pg_catalog.-) {{.EpochMilliseconds}}) OPERATOR(pg_catalog.<<) {{.LowBits}}
END $kiloshard$;
{{- else -}}
-- id_floor returns NULL, since IDs without a time have no smallest ID of a millisecond.
CREATE OR REPLACE FUNCTION kiloshard.id_floor(at timestamp with time zone) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $kiloshard$
SELECT NULL::bigint $kiloshard$;
{{- end}}
