package mapstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// etcdRecord is a version of the map in etcd, as JSON.
type etcdRecord struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"`
	Why     string    `json:"why,omitempty"`
	Change  string    `json:"change"` // random, identifies the change
	Map     string    `json:"map"`    // the document
}

// encode writes a record.
func (r etcdRecord) encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// decodeRecord decodes a record without parsing its map.
func (s *etcd) decodeRecord(kv *mvccpb.KeyValue) (etcdRecord, error) {
	var r etcdRecord
	if json.Unmarshal(kv.Value, &r) != nil || r.Version < 1 { // its error may show the content
		return r, s.about(fmt.Errorf("key %s: %w", kv.Key, errors.New("its content is not a map")))
	}
	return r, nil
}

// decode reads an entry.
func (s *etcd) decode(d documents, kv *mvccpb.KeyValue) (Entry, error) {
	r, err := s.decodeRecord(kv)
	if err != nil {
		return Entry{}, err
	}
	m, err := d.parse(fmt.Sprintf("version %d", r.Version), r.Version, []byte(r.Map))
	if err != nil {
		return Entry{}, s.about(err)
	}
	return Entry{Map: m, At: r.At, By: r.By, Why: r.Why}, nil
}
