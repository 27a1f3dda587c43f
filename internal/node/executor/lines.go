package executor

import (
	"bytes"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// lines cuts a stream of bytes into lines with their newlines. A character
// whose bytes arrive apart stays whole.
type lines struct {
	emit    func(data []byte) // must not keep data
	pending []byte            // the start of a line, shorter than execution.MaxChunk
}

func (l *lines) write(p []byte) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n') + 1
		if n == 0 {
			n = len(p)
		}
		l.line(p[:n])
		p = p[n:]
	}
}

// line takes a line's next bytes, up to and with its newline if it is there.
func (l *lines) line(p []byte) {
	for len(l.pending)+len(p) >= execution.MaxChunk {
		n := execution.MaxChunk - len(l.pending)
		l.pending = append(l.pending, p[:n]...)
		p = p[n:]
		whole := wire.WholeRunes(l.pending)
		l.emit(l.pending[:whole])
		l.pending = l.pending[:copy(l.pending, l.pending[whole:])]
	}
	switch {
	case len(p) == 0:
	case p[len(p)-1] != '\n':
		l.pending = append(l.pending, p...)
	case len(l.pending) == 0:
		l.emit(p) // the usual case, without a copy
	default:
		l.pending = append(l.pending, p...)
		l.flush()
	}
}

// flush emits what is pending.
func (l *lines) flush() {
	if len(l.pending) > 0 {
		l.emit(l.pending)
		l.pending = l.pending[:0]
	}
}

// pause emits what is pending, without the beginning of a character.
func (l *lines) pause() {
	if whole := wire.WholeRunes(l.pending); whole > 0 {
		l.emit(l.pending[:whole])
		l.pending = l.pending[:copy(l.pending, l.pending[whole:])]
	}
}
