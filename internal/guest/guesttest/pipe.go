package guesttest

import (
	"io"
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// pipe is a pipe that its writer may open again by way of /proc.
type pipe struct{ r, w *os.File }

func reopenable(t testing.TB) pipe {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { r.Close() })
	must(t, w.Chown(runtime.UID, runtime.GID))
	return pipe{r, w}
}

func (p pipe) all() []byte {
	b, _ := io.ReadAll(p.r)
	return b
}
