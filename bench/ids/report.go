package ids

// Report is the result of [Run].
type Report struct {
	Server  string       `json:"server"`             // version of Postgres
	Ceiling int          `json:"ceiling_ids_per_ms"` // the most that the format can hold for one shard
	Rows    []Figure     `json:"rows"`
	Lease   LeaseFigure  `json:"lease"`
	Burst   BurstFigure  `json:"many"`
	Memory  MemoryFigure `json:"wrapper"`
	Inserts []Inserts    `json:"inserts"`
}

// Figure is the result of one way of making IDs, with one number of sessions.
type Figure struct {
	Function     string  `json:"function"`
	Sessions     int     `json:"sessions"`
	IDs          int     `json:"ids"`
	Microseconds float64 `json:"microseconds_per_id"` // of one session's time
	PerMs        float64 `json:"ids_per_ms"`          // of all sessions together
	OfCeiling    float64 `json:"share_of_ceiling"`    // 1 is the format's ceiling for one shard
	WALBytes     float64 `json:"wal_bytes_per_id"`
	Duplicates   int     `json:"duplicates"`         // among all IDs of this row
	VsPublished  float64 `json:"ratio_to_published"` // of IDs per millisecond: above 1 is faster
	VsOneShard   float64 `json:"ratio_to_one_shard"` // the same to next_id on one shard
}

// LeaseFigure is how fast a lease returns IDs from blocks in memory, on one core: the median of the rounds.
type LeaseFigure struct {
	NextPerSecond    float64 `json:"next_per_second"`     // one at a time
	NextIDsPerSecond float64 `json:"next_ids_per_second"` // a hundred at a time
}

// BurstFigure is the cost of a burst of IDs in each way, in microseconds per ID: the median of the rounds.
type BurstFigure struct {
	IDs          int     `json:"ids"`           // in a burst
	Singly       float64 `json:"one_by_one"`    // as many statements SELECT next_id()
	Calls        float64 `json:"one_statement"` // as many calls of next_id() in one statement
	Many         float64 `json:"next_ids"`      // one call of next_ids(n)
	VsSingly     float64 `json:"ratio_to_one_by_one"`
	VsCalls      float64 `json:"ratio_to_one_statement"` // of time: below 1 is faster
	Milliseconds float64 `json:"next_ids_milliseconds"`  // for the burst
}

// MemoryFigure is the memory that a session keeps for each shard whose next_id() it has called, in bytes.
type MemoryFigure struct {
	Functions int64 `json:"function_bytes"`
	All       int64 `json:"all_bytes"` // the same including the shard's sequence
}

// Inserts is the result of filling a table with one kind of primary key.
type Inserts struct {
	Key         string      `json:"key"`
	Rows        int         `json:"rows"`
	PerSecond   float64     `json:"rows_per_second"`
	VsBigserial float64     `json:"ratio_to_bigserial"` // of time: above 1 is slower
	IndexBytes  int64       `json:"index_bytes"`
	TableBytes  int64       `json:"table_bytes"`
	WALBytes    float64     `json:"wal_bytes_per_row"`
	Growth      []GrowthRow `json:"growth"` // step by step
}

// GrowthRow is one step of filling a table.
type GrowthRow struct {
	Rows      int     `json:"rows"` // in the table when the step began
	PerSecond float64 `json:"rows_per_second"`
}
