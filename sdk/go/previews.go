package atoll

import (
	"context"
	"net/http"
)

// Previews lists the ports of a sandbox that have a URL.
func (c *Client) Previews(ctx context.Context, ref SandboxRef) ([]Preview, error) {
	all, err := call[PreviewList](ctx, c, http.MethodGet, ref.path("previews"), ref.query(), nil)
	return all.Data, err
}

// OpenPreview exposes a port of a sandbox at a URL.
func (c *Client) OpenPreview(ctx context.Context, ref SandboxRef, port string) (Preview, error) {
	return call[Preview](ctx, c, http.MethodPut, ref.path("previews", port), ref.query(), nil)
}

// ClosePreview revokes the URL of a port.
func (c *Client) ClosePreview(ctx context.Context, ref SandboxRef, port string) error {
	return c.do(ctx, http.MethodDelete, ref.path("previews", port), ref.query())
}
