package document

import "github.com/kiloshard/kiloshard/shards"

// Next returns the map that c becomes as the version after from, nil for the first, and the document to keep of it.
//
// It returns a [shards.FieldError] for a config that is no map, or that holds a password, and the [shards.ChangeError]
// of a change that [shards.CheckChange] refuses and allowed does not allow.
func (r *Reader) Next(from *shards.Map, c shards.Config, allowed func(error) bool) (*shards.Map, []byte, error) {
	c.Store = shards.Store{} // so that the document, put into a file, is a config that works
	if r.local.Remote() {
		c = c.Shared()
	}
	if from != nil && from.Version() > 0 {
		c.Version = from.Version()
	}
	c.Version++
	if err := CheckPasswords(c); err != nil {
		return nil, nil, err
	}
	if r.local.Remote() {
		if err := CheckTrust(r.local.Store, c); err != nil {
			return nil, nil, err
		}
	}
	text, err := c.YAML()
	if err != nil {
		return nil, nil, err
	}
	// The map is that of the document, not of the hosts that the caller has expanded. The cluster is checked last.
	anyCluster := r.KeepUnset()
	anyCluster.local.Cluster = ""
	m, err := anyCluster.Map("the new map", c.Version, text)
	if err != nil {
		return nil, nil, err
	}
	if from != nil {
		if err := shards.CheckChange(from, m); err != nil && !allowed(err) {
			return nil, nil, err
		}
	}
	if r.local.Cluster != "" && c.Cluster != r.local.Cluster {
		return nil, nil, &shards.ChangeError{Field: "cluster", From: r.local.Cluster, To: c.Cluster, Why: "the store would hold the map of another cluster"}
	}
	return m, text, nil
}
