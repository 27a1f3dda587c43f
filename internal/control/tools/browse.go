package tools

import (
	"context"
	"strconv"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Previews exposes ports of sandboxes at URLs.
type Previews interface {
	// Expose returns the URL of a port. It returns the same URL until that is revoked.
	Expose(ctx context.Context, p *tenant.Principal, sb *sandbox.Sandbox, port uint16) (url string, err error)
}

const browseName = "browse"

func browse(ctx context.Context, c *call, in *BrowseInput) (*BrowseOutput, error) {
	port, err := integer("port", in.Port, 1, 1<<16-1)
	if err != nil {
		return nil, err
	}
	c.row.Command = strconv.AppendInt(nil, port, 10)
	out := &BrowseOutput{}
	return out, c.use(ctx, *in.Sandbox, func(h sandbox.Handle) (err error) {
		out.URL, err = c.set.cfg.Previews.Expose(ctx, c.by.Principal, h.Sandbox(), uint16(port))
		return err
	})
}
