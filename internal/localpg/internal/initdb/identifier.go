//go:build unix

package initdb

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
)

// newIdentifier gives a cluster that is shut down another system identifier. It is the first field of the control file,
// which ends with a CRC-32C of the fields before it, and it is also in the first page of each WAL file. See
// src/include/catalog/pg_control.h and src/include/access/xlog_internal.h.
func newIdentifier(data string) error {
	path := filepath.Join(data, "global", "pg_control")
	control, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// The offset of the CRC depends on the version.
	at := 8
	for ; at+4 <= len(control); at += 4 {
		if crc32.Checksum(control[:at], castagnoli) == binary.NativeEndian.Uint32(control[at:]) {
			break
		}
	}
	if at+4 > len(control) {
		return fmt.Errorf("%s: no checksum found", path)
	}
	var identifier [8]byte
	_, _ = rand.Read(identifier[:]) // it never fails
	identifier[7] &= 0x7f           // tools print it as a signed number on some versions
	old := [8]byte(control)
	copy(control, identifier[:])
	binary.NativeEndian.PutUint32(control[at:], crc32.Checksum(control[:at], castagnoli))

	const inPage = 24 // xlp_sysid of XLogLongPageHeaderData
	segments, err := filepath.Glob(filepath.Join(data, "pg_wal", strings.Repeat("[0-9A-F]", 24)))
	if err != nil || len(segments) == 0 {
		return errors.Join(err, fmt.Errorf("%s: no files of WAL", data))
	}
	for _, segment := range segments {
		if err := replaceAt(segment, inPage, old[:], identifier[:]); err != nil {
			return err
		}
	}
	return os.WriteFile(path, control, 0o600)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// replaceAt replaces bytes of a file if they are the expected ones.
func replaceAt(path string, offset int64, old, replacement []byte) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found := make([]byte, len(old))
	if _, err := f.ReadAt(found, offset); err != nil {
		return err
	}
	if string(found) != string(old) {
		return fmt.Errorf("%s: expected the system identifier at byte %d", path, offset)
	}
	_, err = f.WriteAt(replacement, offset)
	return err
}
