package sandboxes

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// ReadFile returns at most limit bytes of a file from offset on, and the size of all
// of it, or less than was returned for what does not know its own. Links are followed.
// ctx is for reading it, too.
func (h *Handle) ReadFile(ctx context.Context, name string, offset, limit int64) (content []byte, size int64, err error) {
	if content, size, err = h.readHere(name, offset, limit); err == nil {
		return content, size, nil
	}
	// The guest does what does not fit, and knows better why it cannot be done.
	info, body, err := h.guest.Read(ctx, name, offset, limit)
	if err != nil {
		return nil, 0, err
	}
	defer body.Close()
	content, err = io.ReadAll(io.LimitReader(body, limit))
	return content, info.Size, err
}

// readHere reads a file where the host has it: what programs write is there at once.
// To ask the guest takes several times as long.
func (h *Handle) readHere(name string, offset, limit int64) ([]byte, int64, error) {
	if !path.IsAbs(name) {
		name = runtime.Home + "/" + name
	}
	if offset < 0 || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.") || strings.ContainsRune(name, 0) || h.Sandbox.Permissions.Restricts() {
		return nil, 0, errElsewhere
	}
	at, ok := h.live.Place(name)
	if !ok {
		return nil, 0, errElsewhere
	}
	c, err := h.m.cfg.Engine.Carrier(nil)
	if err != nil {
		return nil, 0, err
	}
	return c.Read(at, offset, limit)
}
