package shards

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// ErrNoShard says that a key, an ID or a number belongs to no shard of the map.
var ErrNoShard = errors.New("no such shard")

// noShard adds [ErrNoShard] to the reason why a key or an ID has no shard.
func noShard(why error) error { return fmt.Errorf("%w: %w", why, ErrNoShard) }

// ID is a 64-bit identifier made by a shard's next_id(). A [Layout] says which bits are which field.
type ID int64

// Number is the number of a shard, from 0 up.
type Number int32

// Parts are the fields of an ID.
type Parts struct {
	Milliseconds int64  // since the epoch; 0 without a time
	Shard        Number // 0-based
	Type         int    // 0-based; 0 without bits of type
	Sequence     int64  // 0-based slot within the millisecond; without a time, the value of a sequence
}

var errNullID = errors.New("an ID that is null: expected a pointer to a *shards.ID")

// MarshalJSON returns the ID as a JSON string, because JavaScript and others read JSON numbers as doubles: above 2^53
// they round an ID to another one, often that of another shard.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(id), 10)), nil
}

// UnmarshalJSON reads an ID from a JSON string or a JSON number. It leaves the ID as it is for null.
func (id *ID) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	number := string(text)
	if text[0] == '"' {
		if err := json.Unmarshal(text, &number); err != nil {
			return err
		}
	}
	return id.parse(number, string(text))
}

// Scan reads an ID from a column of an integer or a text type. It implements [database/sql.Scanner]; for a column
// that may be null scan into a pointer to a pointer.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		*id = ID(v)
		return nil
	case string:
		return id.parse(v, strconv.Quote(v))
	case []byte:
		return id.parse(string(v), strconv.Quote(string(v)))
	case nil:
		return errNullID
	}
	return fmt.Errorf("an ID of type %T: expected an integer or a text", src)
}

func (id *ID) parse(number, found string) error {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("the ID %s: expected a whole number of 64 bits, or a string of one", found)
	}
	*id = ID(n)
	return nil
}
