package objects

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// merged returns a document with what a program has changed: before and after are its fields as JSON. Only what differs between the two
// is written, also in objects within objects; a list is one value. Everything else stays as it is: fields that the program does not
// have, and numbers as they were written.
func merged(document, before, after []byte) (string, error) {
	var values [3]any
	for i, text := range [][]byte{document, before, after} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return "", err
		}
	}
	if err := checkMark(values[1], values[2]); err != nil {
		return "", err
	}
	return encode(merge(values[0], values[1], values[2]))
}

func merge(document, before, after any) any {
	in, isObject := document.(map[string]any)
	old, wasObject := before.(map[string]any)
	now, stays := after.(map[string]any)
	switch {
	case reflect.DeepEqual(before, after):
		return document
	case !isObject || !wasObject || !stays:
		return after
	}
	for key := range old {
		if _, ok := now[key]; !ok {
			delete(in, key)
		}
	}
	for key, value := range now {
		was, known := old[key]
		is, there := in[key]
		switch {
		case known && reflect.DeepEqual(was, value):
		case known && there:
			in[key] = merge(is, was, value)
		default:
			in[key] = value
		}
	}
	return in
}

// checkMark refuses a document in which a program has set the mark of deleted objects.
func checkMark(before, after any) error {
	old, _ := before.(map[string]any)
	now, _ := after.(map[string]any)
	if value, ok := now["active"]; ok && !reflect.DeepEqual(old["active"], value) {
		return errActive("active")
	}
	return nil
}
