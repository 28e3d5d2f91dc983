package mapstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kiloshard/kiloshard/internal/atomicfile"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/document"
)

// copy returns the last map: the last one accepted, or that of the file. It returns nil if there is none, and an error
// if the file is not a map.
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
		return nil, &shards.FieldError{
			File: s.cfg.Cache, Field: "cluster",
			Found: fmt.Sprintf("the map of another cluster, %q", c.Cluster), Expected: fmt.Sprintf("%q", s.cfg.Cluster),
		}
	}
	if m, ok := s.cfg.Store.(*mapStore); ok && m.docs.Local().Remote() {
		local := m.docs.Local()
		if err := document.CheckTrust(local.Store, c); err != nil {
			return nil, document.Located(err, s.cfg.Cache)
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
	if err := document.CheckPasswords(c); err != nil {
		return err
	}
	text, err := c.YAML()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(s.cfg.Cache); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return atomicfile.Replace(s.cfg.Cache, text, copyMode)
}

// copyMode is the mode of the copy: other users may not read the addresses of hosts.
const copyMode fs.FileMode = 0o600
