package etcdstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// record is a version in etcd, as JSON.
type record struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"`
	Why     string    `json:"why,omitempty"`
	Change  string    `json:"change"` // random, identifies the change
	Map     string    `json:"map"`    // the document
}

// encode returns the JSON of a record.
func (r record) encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// decodeRecord returns the record of a key. Its error does not show the content.
func (s *Store) decodeRecord(kv *mvccpb.KeyValue) (record, error) {
	var r record
	if json.Unmarshal(kv.Value, &r) != nil || r.Version < 1 {
		return r, s.failed(fmt.Errorf("key %s: %w", kv.Key, errors.New("its content is not a map")))
	}
	return r, nil
}

// decode returns the version of a key.
func (s *Store) decode(kv *mvccpb.KeyValue) (*backend.Version, error) {
	r, err := s.decodeRecord(kv)
	if err != nil {
		return nil, err
	}
	return &backend.Version{
		Number: r.Version, Document: []byte(r.Map), At: r.At, By: r.By, Why: r.Why,
		Name: fmt.Sprintf("etcd at %s: version %d", strings.Join(s.endpoints, ", "), r.Version),
	}, nil
}
