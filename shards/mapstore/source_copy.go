package mapstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kiloshard/kiloshard/shards"
)

// copy returns the last map: the last one accepted, else that of the file. It returns nil if there is none, and an error if
// the file is not a map.
func (s *Source) copy() (*shards.Map, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil || s.cfg.Cache == "" {
		return s.last, nil
	}
	m, err := s.readCopy()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		s.last = m
	}
	return m, err
}

func (s *Source) readCopy() (*shards.Map, error) {
	c, err := shards.Load(s.cfg.Cache, s.cfg.Lookup)
	if err != nil {
		return nil, err
	}
	if s.cfg.Cluster != "" && c.Cluster != s.cfg.Cluster {
		return nil, &shards.FieldError{File: s.cfg.Cache, Field: "cluster", Found: fmt.Sprintf("the map of another cluster, %q", c.Cluster), Expected: fmt.Sprintf("%q", s.cfg.Cluster)}
	}
	if store, ok := s.cfg.Store.(interface{ localConfig() shards.Config }); ok {
		local := store.localConfig()
		if err := CheckTrust(local.Store, c); err != nil {
			return nil, located(err, s.cfg.Cache)
		}
		c = c.WithLocal(local)
	}
	return c.Map()
}

// keep writes the copy, with unexpanded DSNs. The caller holds mu.
func (s *Source) keep(m *shards.Map) error {
	if s.cfg.Cache == "" {
		return nil
	}
	c := m.Config().Shared()
	if err := checkPasswords(c); err != nil {
		return err
	}
	text, err := c.YAML()
	if err != nil {
		return err
	}
	if old, _, err := readDocument(s.cfg.Cache); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return replaceFile(s.cfg.Cache, text, copyMode)
}

// copyMode is the mode of the copy: other users may not read the addresses of hosts.
const copyMode fs.FileMode = 0o600
