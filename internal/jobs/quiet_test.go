package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
)

func TestQuiet(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(quiet{slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})})
	log.Info("not told")
	log.Error("not told", "error", "context canceled")
	log.Error("not told", "id", 1, "error", fmt.Errorf("begin: %w", context.Canceled))
	log.Warn("told", "error", errors.New("disk full"))
	log.Error("told too", "error", context.DeadlineExceeded)
	if want := "level=WARN msg=told error=\"disk full\"\nlevel=ERROR msg=\"told too\" error=\"context deadline exceeded\"\n"; out.String() != want {
		t.Errorf("got %s", out.String())
	}
}
