// Package install plans which objects are missing or old on hosts, and creates them.
package install
