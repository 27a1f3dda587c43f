package filetool

import (
	"bufio"
	"bytes"
	"io"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

// sniffed is how much of a file is looked at to tell whether it is text.
const sniffed = 8 << 10

func binary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }

// read answers with lines of a file. The whole file is read, for its number of lines.
func read(c *filetool.Call) (*filetool.Answer, error) {
	f, st, err := regular(c.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if head, _ := in.Peek(sniffed); binary(head) {
		return nil, refuse("%s is no text; it has %d bytes. Look at it with run_code", c.Path, st.Size())
	}
	a := &filetool.Answer{Bytes: st.Size()}
	from := max(c.From, 1)
	full, begun := false, false // begun: a line that has no end yet
	for {
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 && !begun {
			a.Lines++
		}
		if n := a.Lines; len(piece) > 0 && n >= from && (c.To == 0 || n <= c.To) && !full {
			if room := filetool.MaxText - len(a.Body); len(piece) > room {
				full = true
				if a.From != 0 {
					piece = nil // whole lines, but for a first one that does not fit
				} else {
					piece = piece[:room]
				}
			}
			if len(piece) > 0 {
				if a.From == 0 {
					a.From = n
				}
				a.To = n
				a.Body = append(a.Body, piece...)
			}
		}
		begun = err == bufio.ErrBufferFull
		if err == io.EOF {
			break
		}
		if err != nil && !begun {
			return nil, err
		}
	}
	a.Truncated = full
	if a.From == 0 && (c.From > 1 || a.Lines > 0) {
		return nil, refuse("%s has %d lines, so there are none from line %d on", c.Path, a.Lines, from)
	}
	return a, nil
}
