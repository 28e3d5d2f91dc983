package checks

import "fmt"

// In is a condition on the OID of a row of a catalog, such as pg_class: that the schema, an expression for its OID, has it. pg_depend has an
// index by schema. The catalogs themselves have none, and with thousands of shards each look at one of them would read them whole.
func In(catalog, oid, schema string) string {
	return fmt.Sprintf("%s IN (SELECT objid FROM pg_depend WHERE classid = '%s'::regclass AND refclassid = 'pg_namespace'::regclass AND refobjid = %s)", oid, catalog, schema)
}
