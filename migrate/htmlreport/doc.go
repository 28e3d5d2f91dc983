// Package htmlreport writes the report of a migration run as one self-contained HTML file: no network, no scripts.
//
//	var collector htmlreport.Collector
//	cfg.Events = collector.Event
//	report, err := migrate.Up(ctx, cfg)
//	var partial *shards.PartialError
//	errors.As(err, &partial)
//	err = collector.Write(file, cfg.Map, report, partial)
//
// The file has the figures of the run, a map of all shards with a square for each, coloured by its result
// and, if it was migrated, by its duration, the failures with SQLSTATE, file and line, and the slowest
// shards. For 8192 shards it has about 1 MB, and less than 2 MB if all of them failed, each with another error.
package htmlreport
