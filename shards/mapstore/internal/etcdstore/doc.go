// Package etcdstore keeps the map of a cluster in etcd 3.4 or later. Under the prefix and the cluster's name, the key
// map holds the current version, and each key history/<version> one version. One transaction writes both, if the
// revision of the key map has not changed.
//
// Etcd has no clock. A version has the time of the machine that made it, but no earlier one than the version before it.
package etcdstore
