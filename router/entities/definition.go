package entities

import (
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/kiloshard/kiloshard/shards"
)

// Definition defines the number of shards with entities, and the indexes. Write it in Go or in YAML:
//
//	shards: 2048
//	indexes:
//	  - name: index_user_id
//	    properties: [{name: user_id, type: text}]
type Definition struct {
	// Shards is the number of shards of the map, from 0 up, that have entities and index rows. It must never change: nearly
	// all rows would belong to other shards.
	Shards  int               `json:"shards"  yaml:"shards"`
	Indexes []IndexDefinition `json:"indexes" yaml:"indexes"`
	// Compression is how Postgres compresses large documents: pglz or lz4. Defaults to the server's default.
	Compression string `json:"compression,omitempty" yaml:"compression,omitempty"`
}

// IndexDefinition defines one index. An entity has a row in it if its document has all properties with the right types, and
// has the values of Where.
type IndexDefinition struct {
	Name       string     `json:"name"       yaml:"name"`       // of its table
	Properties []Property `json:"properties" yaml:"properties"` // the value of the first one decides the shard
	Unique     bool       `json:"unique"     yaml:"unique"`     // at most one entity has the same values of all properties
	// Where maps properties to the values that they must have: texts, whole numbers, or booleans. Null means that the
	// property is null or missing.
	Where map[string]any `json:"where,omitempty" yaml:"where,omitempty"`
}

// Property is a field of documents.
type Property struct {
	Name string `json:"name" yaml:"name"` // such as userId, or author.id for the field id of the object author
	Type Kind   `json:"type" yaml:"type"`
	// Each means that the value is an array, and that the entity has a row for each of its elements. It is for the first
	// property only.
	Each bool `json:"each,omitempty" yaml:"each,omitempty"`
}

var (
	namePattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,49}$`)
	pathPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	// reserved are the names of columns that index tables have already.
	reserved = []string{"entity_id", "entity_version", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}
)

const maxPath = 60 // bytes: Postgres truncates names after 63

// Parse parses a definition in YAML and checks it.
func Parse(document []byte) (Definition, error) {
	var d Definition
	if err := yaml.UnmarshalWithOptions(document, &d, yaml.Strict()); err != nil {
		return d, errors.New(yaml.FormatError(err, false, false)) // without the line: the file may be another one and contain a password
	}
	return d, d.check()
}

func wrong(field, found, expected string) error {
	return &shards.FieldError{Field: field, Found: found, Expected: expected}
}

// check returns a [shards.FieldError] for the first mistake.
func (d Definition) check() error {
	if d.Shards < 1 {
		return wrong("shards", fmt.Sprint(d.Shards), "1 or more")
	}
	if !slices.Contains([]string{"", "pglz", "lz4"}, d.Compression) {
		return wrong("compression", d.Compression, "pglz or lz4")
	}
	for i, index := range d.Indexes {
		field := fmt.Sprintf("indexes[%d]", i)
		if !namePattern.MatchString(index.Name) || slices.Contains([]string{"entities", "entity_work", "entity_indexes"}, index.Name) {
			return wrong(field+".name", fmt.Sprintf("%q", index.Name), "small letters, digits and '_', 50 at most, and not the name of another table")
		}
		if slices.ContainsFunc(d.Indexes[:i], func(o IndexDefinition) bool { return o.Name == index.Name }) {
			return wrong(field+".name", index.Name+" a second time", "each name once")
		}
		if err := index.check(field); err != nil {
			return err
		}
	}
	return nil
}

func (i IndexDefinition) check(field string) error {
	if len(i.Properties) == 0 {
		return wrong(field+".properties", "none", "one at least")
	}
	for k, p := range i.Properties {
		at := fmt.Sprintf("%s.properties[%d]", field, k)
		if err := checkPath(at+".name", p.Name); err != nil {
			return err
		}
		if slices.Contains(reserved, p.Name) {
			return wrong(at+".name", p.Name, "not the name of a column that each index has")
		}
		if slices.ContainsFunc(i.Properties[:k], func(o Property) bool { return o.Name == p.Name }) {
			return wrong(at+".name", p.Name+" a second time", "each property once")
		}
		if columnTypes[p.Type] == "" {
			return wrong(at+".type", fmt.Sprintf("%q", p.Type), "text, int, float, bool or time")
		}
		if p.Each && k > 0 {
			return wrong(at+".each", "true", "the first property: an entity would be on several pages of one query")
		}
	}
	for p, value := range i.Where {
		if err := checkPath(field+".where", p); err != nil {
			return err
		}
		if _, ok := scalar(value); !ok {
			return wrong(field+".where."+p, fmt.Sprint(value), "a text, a whole number, a boolean or null")
		}
	}
	return nil
}

func checkPath(field, path string) error {
	if !pathPattern.MatchString(path) || len(path) > maxPath {
		return wrong(field, fmt.Sprintf("%q", path), fmt.Sprintf("letters, digits and '_', with a point between the names of a path, %d at most", maxPath))
	}
	return nil
}

// paths returns the properties that the indexes for which use returns true need, each once.
func (d Definition) paths(use func(IndexDefinition) bool) []string {
	var all []string
	for _, index := range d.Indexes {
		if !use(index) {
			continue
		}
		for _, p := range index.Properties {
			all = append(all, p.Name)
		}
		for p := range index.Where {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fingerprints returns the name and fingerprint of the entities and of each index, as table entity_indexes has them.
func (d Definition) fingerprints() []string {
	all := []string{entitiesName + " " + fmt.Sprint(d.Shards)}
	for _, index := range d.Indexes {
		all = append(all, index.Name+" "+index.fingerprint())
	}
	return all
}

// fingerprint identifies what an index has rows of.
func (i IndexDefinition) fingerprint() string {
	text, _ := json.Marshal(i) // of plain values
	return fmt.Sprintf("%x", md5.Sum(text))
}
