package sql

// Grant is a role and what it may do in shards: read and write rows and make IDs, or only read.
type Grant struct {
	Role     string
	ReadOnly bool
}

// Shards returns the script that grants the rights in the schemas of shards, which are plain identifiers: on what is in them, and as default
// privileges for what the current role makes there later.
func (g Grant) Shards(schemas []string) string { return render("grant", grantData{g, schemas}) }

// Helper returns the script that grants the rights in the helper schema, and CONNECT on the database where that is missing.
func (g Grant) Helper() string { return render("grant helper", grantData{Grant: g}) }

// RevokeShards returns the script that takes back what [Grant.Shards] grants, and every other right on these schemas.
func (g Grant) RevokeShards(schemas []string) string { return render("revoke", grantData{g, schemas}) }

// RevokeHelper returns the script that takes back what [Grant.Helper] grants, but CONNECT.
func (g Grant) RevokeHelper() string { return render("revoke helper", grantData{Grant: g}) }

type grantData struct {
	Grant
	Schemas []string
}
