// Package htmlreport writes what a migration run did as one HTML file, which needs nothing beside itself: no
// network, no scripts.
//
//	var collector htmlreport.Collector
//	cfg.Events = collector.Event
//	report, err := migrate.Up(ctx, cfg)
//	var partial *shards.PartialError
//	errors.As(err, &partial)
//	err = collector.Write(file, cfg.Map, report, partial)
//
// The file has the figures of the run, a map of all shards with a square for each, coloured by what became of it
// and, where it was migrated, by how long that took, the failures with SQLSTATE, file and line, and the slowest
// shards. For 8192 shards it has about 1 MB, and less than 2 MB when all of them failed, each by another error.
package htmlreport
