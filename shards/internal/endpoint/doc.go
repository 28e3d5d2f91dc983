// Package endpoint checks the URLs of etcd's servers as kiloshard.yaml has them.
package endpoint
