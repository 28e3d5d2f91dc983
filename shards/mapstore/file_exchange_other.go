//go:build !linux && !darwin

package mapstore

import "errors"

func exchangeFiles(_, _ string) error { return errors.ErrUnsupported }
