package sqltree

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/wasilibs/go-pgquery/parser"
)

// maxDepth is the maximum depth of a parse tree, in objects. When the parser writes a tree as JSON and its stack overflows,
// at about 1,200 nested operators, it hangs and cannot be stopped. Written as protobuf, a tree needs much less
// stack, and the parser panics at its limit.
const maxDepth = 400

// checkDepth returns an error for a text whose parse tree is too deep, or that cannot be read.
func checkDepth(sql string) error {
	tree, err := parser.ParseToProtobuf(sql)
	if err != nil {
		return err
	}
	if depth(tree) > maxDepth {
		return &Error{Message: fmt.Sprintf("its expressions are nested more than %d deep", maxDepth)}
	}
	return nil
}

// depth returns the nesting depth of messages in a protobuf message. It may return more, since a text can look like a
// message. It stops above maxDepth.
func depth(message []byte) int {
	deepest, _ := depthBelow(message, 0)
	return deepest
}

// depthBelow returns false for bytes that are not a message.
func depthBelow(message []byte, above int) (int, bool) {
	deepest := above + 1
	for len(message) > 0 && deepest <= maxDepth {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 {
			return above, false
		}
		message = message[n:]
		var size uint64
		switch tag & 7 {
		case 0: // varint
			if _, n = binary.Uvarint(message); n <= 0 {
				return above, false
			}
			message = message[n:]
			continue
		case 1:
			size = 8
		case 2: // a message, or a text
			if size, n = binary.Uvarint(message); n <= 0 {
				return above, false
			}
			message = message[n:]
		case 5:
			size = 4
		default:
			return above, false
		}
		if size > uint64(len(message)) {
			return above, false
		}
		if tag&7 == 2 {
			if below, ok := depthBelow(message[:size], above+1); ok {
				deepest = max(deepest, below)
			}
		}
		message = message[size:]
	}
	return deepest, true
}

// broken is set after a panic of the WebAssembly machine. Its memory is unreliable then, but the parser's package keeps
// using it.
var broken atomic.Bool

// gaveUp turns a panic of the WebAssembly machine into an error.
func gaveUp(panicked any) error {
	broken.Store(true)
	first, _, _ := strings.Cut(fmt.Sprint(panicked), "\n")
	return &Error{Message: "the parser gave up: " + first}
}

var errBroken = &Error{Message: "the parser failed on a text before, and cannot be used again in this process"}
