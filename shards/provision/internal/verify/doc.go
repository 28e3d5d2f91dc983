// Package verify compares the inventories of hosts with a map, object by object.
package verify
