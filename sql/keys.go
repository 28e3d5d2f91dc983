package sql

// Keys returns the script that records the strategy of a cluster's map in the helper schema.
func Keys(cluster, keys string) string {
	return render("keys.sql", struct{ Cluster, Keys string }{cluster, keys})
}
