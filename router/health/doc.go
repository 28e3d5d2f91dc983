// Package health reports over HTTP whether a service is alive, and whether its router reaches its hosts.
//
//	mux.Handle("GET /healthz", checker)
//	mux.Handle("GET /readyz", checker)
//
// /healthz says that the process answers, and queries no host: a process must not be killed because a database is down.
// /readyz queries every host, answers 200 or 503, and reports each host:
//
//	{"ready":true,"cluster":"photos","map_version":7,"hosts":[
//	  {"host":"pg-a","up":true,"milliseconds":0.8,"connections":4,"idle":3,"waiting":0,"shard_count":1024},
//	  {"host":"pg-b","up":false,"error":"unreachable","breaker":"open","down_since":"2026-11-21T12:00:00Z",
//	   "connections":0,"idle":0,"waiting":0,"shard_count":1024}]}
//
// By default a service is ready while any host answers, because it can serve the shards of that host. If one host of many were
// enough to take the service out of rotation everywhere, nobody would be served. [Config].Need requires more hosts. A host whose
// connections are all in use for longer than [Config].Timeout counts as down. The report has no user and no password, and an
// address only with [Config].Addresses: that of the primary.
//
// map_stale says that the map may be out of date. The service stays ready, because the router still serves. With a
// mapstore.Source it is also true after a start from the cached copy of the last map, until the store answers.
package health
