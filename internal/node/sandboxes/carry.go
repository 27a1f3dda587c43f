package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/client"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// carryAtOnce is how many folders and files are copied by the host at the same time.
const carryAtOnce = 4

// errElsewhere says that something is not where the host keeps sandboxes' files.
var errElsewhere = errors.New("not among the sandbox's files on disk")

// Carry copies the folder at a path, on which no link is, to a new name in another
// sandbox, by the host alone: the kernels of both would take ten times as long, if
// there are many files. Whatever does not fit leaves nothing, and done is false: then
// the attendants are to do it, who know better why it cannot be done, if so. bytes
// are those of the files.
func (h *Handle) Carry(ctx context.Context, path string, to *Handle, name string) (bytes int64, done bool, err error) {
	if _, ok := h.reaches(path, to); !ok {
		return 0, false, nil
	}
	if whole, err := h.guest.Whole(ctx, path); err != nil || !whole {
		return 0, false, ctx.Err()
	}
	return h.carry(ctx, path, to, name, func(ctx context.Context, c disk.Carrier, from, into disk.Place) (int64, error) {
		_, bytes, err := c.Carry(ctx, from, into, client.Adopted)
		return bytes, err
	})
}

// CarryFile does as Carry with a file.
func (h *Handle) CarryFile(ctx context.Context, path string, to *Handle, name string) (bytes int64, done bool, err error) {
	return h.carry(ctx, path, to, name, func(ctx context.Context, c disk.Carrier, from, into disk.Place) (int64, error) {
		return c.CarryFile(ctx, from, into, client.Adopted)
	})
}

// reaches is where the host has what h's sandbox has at a path, if the host may copy it.
func (h *Handle) reaches(path string, to *Handle) (disk.Place, bool) {
	if h.Sandbox.Permissions.Restricts() || to.Sandbox.Permissions.Restricts() { // the guest holds these
		return disk.Place{}, false
	}
	return h.live.Place(path)
}

// carriage copies what is in one place to be Adopted in another.
type carriage func(ctx context.Context, c disk.Carrier, from, into disk.Place) (bytes int64, err error)

func (h *Handle) carry(ctx context.Context, path string, to *Handle, name string, by carriage) (bytes int64, done bool, err error) {
	from, ok := h.reaches(path, to)
	if !ok {
		return 0, false, nil
	}
	select {
	case h.m.carrying <- struct{}{}:
		defer func() { <-h.m.carrying }()
	case <-ctx.Done():
		return 0, false, context.Cause(ctx)
	}
	var failed error
	err = to.guest.Adopt(ctx, name, func(ctx context.Context, at string) error {
		bytes, failed = to.receive(ctx, from, at, by)
		return failed
	})
	_, told := errors.AsType[*fault.Error](failed)
	switch {
	case err == nil:
		return bytes, true, nil
	case to.Stopped() != nil:
		return 0, false, to.Stopped()
	case ctx.Err() != nil, told, errors.Is(err, client.ErrGone), errors.Is(err, client.ErrProtocol):
		return 0, false, err
	}
	return 0, false, nil
}

// receive copies something into a folder of h's sandbox.
func (h *Handle) receive(ctx context.Context, from disk.Place, at string, by carriage) (bytes int64, err error) {
	into, ok := h.live.Place(at)
	if !ok {
		return 0, errElsewhere
	}
	a := allowance{h: h, ctx: ctx}
	c, err := h.m.cfg.Engine.Carrier(a.more)
	if err != nil {
		return 0, err
	}
	return by(ctx, c, from, into)
}

// allowance is what the host may write into a sandbox.
type allowance struct {
	h     *Handle
	ctx   context.Context
	bound int64 // once measured; of what may be spent
}

// more says up to which sum may be spent before it is asked again. The files are not
// measured for what is little: there may be many of them.
func (a *allowance) more(spent int64) (most int64, err error) {
	h := a.h
	if err := h.stopped(); err != nil {
		return 0, err
	}
	if err := h.m.cfg.Disk(); err != nil {
		return 0, err
	}
	most = spent + slack
	limit := h.Sandbox.Disk
	if limit <= 0 || spent < slack {
		return most, nil
	}
	if a.bound == 0 {
		used, err := h.live.Measure(a.ctx, limit)
		if err != nil && !errors.Is(err, disk.ErrMore) {
			return 0, err
		}
		a.bound = max(spent+limit-used, 1) // most of what was spent is there
	}
	if spent > a.bound {
		return 0, fault.Limit("sandbox_disk", time.Time{}, "sandbox %q: its files would take more than %s of disk. Delete some files", h.Sandbox.Name, runtime.FormatBytes(limit))
	}
	return min(most, a.bound), nil
}
