package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
)

func TestQuiet(t *testing.T) {
	var out bytes.Buffer
	var stopping atomic.Bool
	log := slog.New(quiet{slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}), &stopping}).With("id", 1)
	log.Info("not told")
	log.Error("told", "error", context.Canceled)
	stopping.Store(true)
	log.Error("not told", "error", "context canceled")
	log.Error("not told", "of", 1, "error", fmt.Errorf("begin: %w", context.Canceled))
	log.Warn("told", "error", errors.New("disk full"))
	log.Error("told too", "error", context.DeadlineExceeded)
	const want = `level=ERROR msg=told id=1 error="context canceled"
level=WARN msg=told id=1 error="disk full"
level=ERROR msg="told too" id=1 error="context deadline exceeded"
`
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}
