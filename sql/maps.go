package sql

// Maps returns the script that creates the table of the maps in a control database, or upgrades it to the present
// version. Only its owner may run it.
func Maps() string { return render("maps.sql", engineData{}) }

// MapsAreOld returns a query that is true if the table of the maps has an older version and the role may run [Maps].
func MapsAreOld() string {
	return `select c.oid is not null and pg_catalog.pg_has_role(c.relowner, 'usage')
	and not exists (select from pg_catalog.pg_trigger t where t.tgrelid operator(pg_catalog.=) c.oid and t.tgname operator(pg_catalog.=) 'note_map')
from (select pg_catalog.to_regclass('kiloshard.maps')) m (oid) left join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) m.oid`
}
