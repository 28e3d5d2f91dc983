{{/* What both engines are made of. Postgres shifts an int within 32 bits, so what needs more becomes a bigint. */}}
{{- define "shard"}}(shard{{if .ShardIsWide}}::bigint{{end}} OPERATOR(pg_catalog.<<) {{.BelowShard}}){{end}}
{{- define "type"}}(type{{if .TypeIsWide}}::bigint{{end}} OPERATOR(pg_catalog.<<) {{.SequenceBits}}){{end}}
{{- define "check type"}}{{if .TypeBits}}
  IF type OPERATOR(pg_catalog.<) 0 OR type OPERATOR(pg_catalog.>) {{.TypeMask}} THEN
    RAISE EXCEPTION 'type %: expected 0 to {{.TypeMask}}', type USING ERRCODE = 'invalid_parameter_value';
  END IF;
{{- end}}{{end -}}
