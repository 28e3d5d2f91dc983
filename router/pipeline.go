package router

// Pipeline says which single statements of different callers a host's connections may send together, each with a Sync of
// its own: each is a transaction by itself and fails alone.
type Pipeline int

const (
	// PipelineReads sends those together that only read, and that have not been slow. The others go by themselves.
	PipelineReads Pipeline = iota
	// PipelineAll sends all together that have not been slow. Writes of one batch then wait for each other's commits.
	PipelineAll
	// PipelineOff sends each by itself.
	PipelineOff
)
