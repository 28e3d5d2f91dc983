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
// By default it is ready while any host answers: it can serve the shards of that host, and a service taken out of rotation
// everywhere because one host of many is down would serve no one. [Config].Need asks for more. A host whose
// connections are all in use for longer than [Config].Timeout counts as one that does not answer. Nothing that is answered
// names a user or a password, or an address unless [Config].Addresses asks for that of the primary.
//
// A map that may not be the present one is told, map_stale, and is no reason not to be ready: such a router serves. With
// a mapstore.Source that is so also for a router that started from its copy of the last map, until the store is back.
package health
