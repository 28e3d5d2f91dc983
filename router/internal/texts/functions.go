package texts

import (
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// readOnlyWords are words that may precede a parenthesis in SQL that only reads: key words, types, and common functions of
// Postgres. Any other word may be a function that writes. Only speed depends on the list: the server itself refuses writes
// in a statement that was sent as a read.
var readOnlyWords = wordSet(`
	all and any array as between by case cast distinct else except exists extract filter from group having in intersect
	is join lateral like ilike limit materialized not offset on or order over partition range rows row select similar some
	then to union unnest using values when where with within grouping sets cube rollup only interval
	bit char character date decimal float numeric time timestamp timestamptz varchar varying
	abs age array_agg array_append array_cat array_length array_position array_remove array_to_json array_to_string
	ascii avg bit_and bit_or bool_and bool_or btrim cardinality ceil ceiling char_length chr clock_timestamp coalesce
	concat concat_ws count cume_dist current_setting date_bin date_part date_trunc decode dense_rank div encode every
	exp first_value floor format format_type generate_series greatest initcap isfinite json_agg json_array_length
	json_build_array json_build_object json_each json_each_text json_object_agg json_object_keys json_typeof jsonb_agg
	jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each
	jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys jsonb_path_exists
	jsonb_path_query jsonb_set jsonb_strip_nulls jsonb_to_recordset jsonb_typeof justify_interval lag last_value lead
	least left length ln log lower lpad ltrim make_date make_interval make_timestamp max md5 min mod mode now nth_value
	ntile nullif octet_length overlay percent_rank percentile_cont percentile_disc pg_backend_pid pg_column_size
	pg_is_in_recovery pg_typeof phraseto_tsquery plainto_tsquery position power radians rank regexp_match regexp_matches
	regexp_replace regexp_split_to_array regexp_split_to_table repeat replace reverse right round row_number row_to_json
	rpad rtrim sign split_part sqrt starts_with statement_timestamp stddev string_agg string_to_array strpos substr
	substring sum to_char to_date to_json to_jsonb to_number to_regclass to_timestamp to_tsquery to_tsvector
	transaction_timestamp translate trim trunc ts_headline ts_rank ts_rank_cd upper variance version
	websearch_to_tsquery width_bucket
	pg_control_system pg_current_wal_insert_lsn pg_walfile_name`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// callScan finds calls in SQL.
type callScan struct {
	before sqltext.Token
	named  bool // a dot precedes before
}

// known takes the next token of SQL. It returns false if the token starts a call of a function that is not in readOnlyWords.
// It may mistake a column for a function: the SQL then counts as one that may write.
func (c *callScan) known(t sqltext.Token) bool {
	known := true
	if t.Is("(") && (c.before.Kind == sqltext.Word || c.before.Kind == sqltext.Name) && c.before.Text != "" {
		known = !c.named && readOnlyWords[c.before.Name()]
	}
	c.named = c.before.Is(".")
	c.before = t
	return known
}
