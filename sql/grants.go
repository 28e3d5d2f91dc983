package sql

// Grant is a role and its privileges in shards: read and write rows and make IDs, or only read.
type Grant struct {
	Role     string
	ReadOnly bool
}

// Shards returns the script that grants the privileges in the schemas of shards, which are plain identifiers: on existing
// objects, and as default privileges on objects that the current role makes later.
func (g Grant) Shards(schemas []string) string { return render("grant", grantData{g, schemas}) }

// Helper returns the script that grants the privileges in the helper schema, and CONNECT on the database if it is missing.
func (g Grant) Helper() string { return render("grant helper", grantData{Grant: g}) }

// RevokeShards returns the script that revokes what [Grant.Shards] grants, and all other privileges in these schemas.
func (g Grant) RevokeShards(schemas []string) string { return render("revoke", grantData{g, schemas}) }

// RevokeHelper returns the script that revokes what [Grant.Helper] grants, except CONNECT.
func (g Grant) RevokeHelper() string { return render("revoke helper", grantData{Grant: g}) }

type grantData struct {
	Grant
	Schemas []string
}
