package hedge

import (
	"reflect"
	"slices"
	"time"
)

// KeepArgs returns arguments that stay as they are when the caller goes on and uses its own again, while a server that
// lost is still being asked. It returns false for those of which it cannot tell.
func KeepArgs(args []any) ([]any, bool) {
	kept := slices.Clone(args)
	for i, arg := range kept {
		var ok bool
		if kept[i], ok = keepArg(arg); !ok {
			return nil, false
		}
	}
	return kept, true
}

func keepArg(arg any) (any, bool) {
	if arg == nil {
		return nil, true
	}
	v := reflect.ValueOf(arg)
	switch {
	case plain(v.Type()):
		return arg, true
	case v.Kind() == reflect.Slice && plain(v.Type().Elem()):
		if v.IsNil() {
			return arg, true
		}
		kept := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(kept, v)
		return kept.Interface(), true
	}
	return nil, false
}

// plain tells whether values of a type hold nothing that may change.
func plain(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.String || t == reflect.TypeFor[time.Time]():
		return true
	case k == reflect.Array:
		return plain(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
