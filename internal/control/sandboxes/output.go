package sandboxes

import (
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// rewind is how many bytes before a cursor are read again. A secret that crosses the cursor is
// thus redacted as it was for a client that read through it.
const rewind = 64 << 10

// view is the redacted output of a process after a cursor.
type view struct {
	after process.Seq // nothing before it is shown
	at    process.Seq // taken so far
	text  bool        // no character is cut in two

	pair     *redact.Pair
	terminal *redact.Stream
	seen     [process.Control][]byte // redacted and not shown yet, by Stream
	held     [process.Control][]byte // of text: the beginning of a character
}

func newView(covers *redact.Set, after process.Seq, text bool) *view {
	v := &view{after: after, at: max(0, after-rewind), text: text}
	v.pair = covers.Pair(v.see(process.Stdout), v.see(process.Stderr))
	v.terminal = covers.Stream(v.see(process.Terminal))
	return v
}

// see takes redacted bytes of a stream and skips those before the cursor. Of text, it keeps a
// character that crosses the cursor: its beginning was not shown.
func (v *view) see(s process.Stream) func([]byte) {
	return func(p []byte) {
		switch {
		case v.at >= v.after:
			v.seen[s] = append(v.seen[s], p...)
		case v.text:
			data := append(v.held[s], p...)
			v.held[s] = append([]byte(nil), data[wire.WholeRunes(data):]...)
		}
	}
}

// take takes a chunk, and returns how many bytes before it are missing.
func (v *view) take(c process.Chunk) (missing int64) {
	begin := c.Seq - process.Seq(len(c.Data))
	if gap := begin - max(v.at, v.after); gap > 0 {
		missing = int64(gap)
		v.flush()
	}
	v.at = begin
	if before := int(min(v.after-begin, process.Seq(len(c.Data)))); before > 0 {
		v.write(c.Stream, c.Data[:before])
		v.at += process.Seq(before)
		c.Data = c.Data[before:]
	}
	if len(c.Data) > 0 {
		v.write(c.Stream, c.Data)
	}
	v.at = c.Seq
	return missing
}

func (v *view) write(s process.Stream, p []byte) {
	switch s {
	case process.Stdout:
		v.pair.Write(redact.Stdout, p)
	case process.Stderr:
		v.pair.Write(redact.Stderr, p)
	case process.Terminal:
		v.terminal.Write(p)
	}
}

// flush shows bytes that were held because they may begin a secret.
func (v *view) flush() {
	v.pair.Flush()
	v.terminal.Flush()
}

// shown returns the bytes of a stream to show. all includes the beginning of a character.
func (v *view) shown(s process.Stream, all bool) []byte {
	data := append(v.held[s], v.seen[s]...)
	v.seen[s], v.held[s] = v.seen[s][:0], nil
	if v.text && !all {
		whole := wire.WholeRunes(data)
		v.held[s] = append([]byte(nil), data[whole:]...)
		data = data[:whole]
	}
	return data
}
