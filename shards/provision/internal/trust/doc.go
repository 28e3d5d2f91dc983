// Package trust finds objects of other roles among those that Kiloshard uses on a host. Using them would run the code
// of these roles with the rights of Kiloshard's role.
package trust
