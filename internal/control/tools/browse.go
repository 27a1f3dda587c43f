package tools

import (
	"context"
	"strconv"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Previews give URLs to the ports of sandboxes.
type Previews interface {
	// Expose returns a URL at which a port can be seen, the same as long as that is
	// not revoked.
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
