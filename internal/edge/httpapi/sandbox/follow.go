package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// heldFor is how long output is held that may be the beginning of a secret: a terminal's
// user wants to see what is typed, a program may wait for an answer to what it wrote.
const heldFor = 100 * time.Millisecond

// Follow shows the output of a process as v has it. It calls alive every
// httpapi.Keepalive, unless that is nil. It returns io.EOF at the end of the process, and
// the cause of ctx when that ends. The caller closes out afterwards.
func Follow(ctx context.Context, out process.Output, v *View, show func(s process.Stream, data []byte) error, alive func() error) error {
	chunks, failed, taken, left := make(chan process.Chunk), make(chan error, 1), make(chan struct{}), make(chan struct{})
	defer close(left)
	go func() { // ends with out
		for {
			chunk, err := out.Next()
			if err != nil {
				failed <- err
				return
			}
			select {
			case chunks <- chunk:
			case <-left:
				return
			}
			select {
			case <-taken: // its bytes are valid until the next is asked for
			case <-left:
				return
			}
		}
	}()
	held, quiet := time.NewTimer(heldFor), time.NewTicker(httpapi.Keepalive)
	defer held.Stop()
	defer quiet.Stop()
	for {
		var err error
		select {
		case chunk := <-chunks:
			v.Take(chunk)
			taken <- struct{}{}
			held.Reset(heldFor)
		case <-held.C:
			v.Flush()
		case <-quiet.C:
			if alive != nil {
				err = alive()
			}
		case err = <-failed:
			v.Flush()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for s := process.Stdout; s <= process.Terminal; s++ {
			if data := v.Shown(s, true); len(data) > 0 {
				if err := show(s, data); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
}
