// Package configfile reads YAML into a struct and writes it back.
//
// The library parses, but its decoder is not used. It accepts 123 and true as texts, "7" and 1e3 as numbers, and null
// as an empty host; of two fields of the same name, or one that << merges in, it takes the last; and it ignores a
// second document. Its errors name Go's types instead of fields, and quote the line, which may hold a password.
//
// The tag of a struct's field is its name in YAML, with options:
//
//	yaml:"name"            a text that is not empty, a whole number from 1 up, true or false, a list, a mapping
//	yaml:"name,omitempty"  not written if it is zero
//	yaml:"name,quoted"     written in quotes, with the texts in it
//	yaml:"name,zero"       a number that may be 0
//	yaml:"name,required"   must be in a mapping that has other fields
//	yaml:"name,short"      may stand for the whole mapping
//	yaml:"name,last"       follows the other fields in messages
package configfile
