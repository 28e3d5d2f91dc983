package localpg_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// storeXZ puts data into the .xz format without compressing it, for to decompress megabytes takes long under the race
// detector. See https://tukaani.org/xz/xz-file-format.txt.
func storeXZ(data []byte) []byte {
	var out bytes.Buffer
	flags := []byte{0, 1} // the check is a CRC32

	out.WriteString("\xFD7zXZ\x00")
	out.Write(flags)
	out.Write(sum(flags))

	begin := out.Len()
	header := []byte{2, 0, 0x21, 1, 0, 0, 0, 0} // one filter, LZMA2, with the smallest dictionary
	out.Write(header)
	out.Write(sum(header))
	control := byte(1) // not compressed, dictionary reset
	for rest := data; len(rest) > 0; control = 2 {
		chunk := rest[:min(len(rest), 1<<16)]
		rest = rest[len(chunk):]
		out.WriteByte(control)
		out.Write(binary.BigEndian.AppendUint16(nil, uint16(len(chunk)-1)))
		out.Write(chunk)
	}
	out.WriteByte(0)
	size := out.Len() - begin
	pad(&out)
	out.Write(sum(data))

	index := bytes.NewBuffer([]byte{0, 1}) // one record
	index.Write(binary.AppendUvarint(nil, uint64(size+crc32.Size)))
	index.Write(binary.AppendUvarint(nil, uint64(len(data))))
	pad(index)
	index.Write(sum(index.Bytes()))
	out.Write(index.Bytes())

	footer := append(binary.LittleEndian.AppendUint32(nil, uint32(index.Len()/4-1)), flags...)
	out.Write(sum(footer))
	out.Write(footer)
	out.WriteString("YZ")
	return out.Bytes()
}

func sum(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
}

func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
