{{/* Parts of both engines. Postgres shifts an int within 32 bits, so a wider value is cast to bigint. */}}
{{- define "shard"}}(shard{{if .ShardIsWide}}::bigint{{end}} OPERATOR(pg_catalog.<<) {{.BelowShard}}){{end}}
{{- define "type"}}(type{{if .TypeIsWide}}::bigint{{end}} OPERATOR(pg_catalog.<<) {{.SequenceBits}}){{end}}
{{- define "in range"}}shard OPERATOR(pg_catalog.>=) 0 AND shard OPERATOR(pg_catalog.<=) {{.ShardMask}}
{{- if .TypeBits}} AND type OPERATOR(pg_catalog.>=) 0 AND type OPERATOR(pg_catalog.<=) {{.TypeMask}}{{end}}{{end}}
{{- define "check arguments"}}
  IF shard IS NULL OR seq IS NULL{{if .TypeBits}} OR type IS NULL{{end}} THEN
    RAISE EXCEPTION 'a shard, sequence or type must not be NULL' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF shard OPERATOR(pg_catalog.<) 0 OR shard OPERATOR(pg_catalog.>) {{.ShardMask}} THEN
    RAISE EXCEPTION 'shard %: expected 0 to {{.ShardMask}}', shard USING ERRCODE = 'invalid_parameter_value';
  END IF;
{{- if .TypeBits}}
  IF type OPERATOR(pg_catalog.<) 0 OR type OPERATOR(pg_catalog.>) {{.TypeMask}} THEN
    RAISE EXCEPTION 'type %: expected 0 to {{.TypeMask}}', type USING ERRCODE = 'invalid_parameter_value';
  END IF;
{{- end}}{{end -}}
