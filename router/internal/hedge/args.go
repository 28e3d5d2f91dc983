package hedge

import (
	"reflect"
	"slices"
	"time"
)

// KeepArgs returns a copy of the arguments that does not change when the caller reuses its own. The slower server of a race
// may still read them after the caller has its answer. KeepArgs returns false if it cannot copy an argument.
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

// plain reports whether an assignment copies a value of the type completely: it holds no pointers, slices or maps.
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
