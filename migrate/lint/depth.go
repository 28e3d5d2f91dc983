package lint

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/wasilibs/go-pgquery/parser"
)

// maxDepth is how deep a parse tree may be, in objects. The parser writes deeper ones as JSON only
// as far as its stack goes, which for a chain of operators is some 1,200 deep, and then never ends;
// nor can it be stopped. It writes them as protobuf with much less, and panics at its limit.
const maxDepth = 400

// checkDepth returns an error for a text whose parse tree is too deep, or that cannot be read.
func checkDepth(sql string) error {
	tree, err := parser.ParseToProtobuf(sql)
	if err != nil {
		return err
	}
	if depth(tree) > maxDepth {
		return &ParseError{Message: fmt.Sprintf("its expressions are nested more than %d deep", maxDepth)}
	}
	return nil
}

// depth returns how deep the messages are nested in a protobuf message, or somewhat more, for a
// text may look like a message. It stops above maxDepth.
func depth(message []byte) int {
	deepest, _ := depthBelow(message, 0)
	return deepest
}

// depthBelow returns false for what is no message.
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

// broken is set when the WebAssembly machine has panicked. Its memory is then not to be relied on,
// and the parser's package goes on using it.
var broken atomic.Bool

// gaveUp makes an error of a panic of the WebAssembly machine.
func gaveUp(panicked any) error {
	broken.Store(true)
	first, _, _ := strings.Cut(fmt.Sprint(panicked), "\n")
	return &ParseError{Message: "the parser gave up: " + first}
}

var errBroken = &ParseError{Message: "the parser failed on a text before, and cannot be used again in this process"}
