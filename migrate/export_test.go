package migrate

// Split is split, with the texts of the statements.
func Split(sql string) ([]string, bool) {
	found, sure := split(sql)
	texts := make([]string, len(found))
	for i, s := range found {
		texts[i] = sql[s.start:s.end]
	}
	return texts, sure
}
