package atoll

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// SandboxRef names a sandbox: by its name in a session, or by its id.
type SandboxRef struct{ Session, Name string }

func (ref SandboxRef) path(more ...string) string {
	return under("/v1/sandboxes", append([]string{ref.Name}, more...)...)
}

func (ref SandboxRef) query(pairs ...string) url.Values {
	q := url.Values{}
	if ref.Session != "" {
		q.Set("session", ref.Session)
	}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

// Sandboxes lists the named sandboxes of a session, or of all sessions if the name is "".
func (c *Client) Sandboxes(ctx context.Context, session string) ([]Sandbox, error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	all, err := call[SandboxList](ctx, c, http.MethodGet, "/v1/sandboxes", q, nil)
	return all.Data, err
}

// CreateSandbox creates a named sandbox, or returns the existing one of that name.
func (c *Client) CreateSandbox(ctx context.Context, in NewSandbox) (Sandbox, error) {
	return create[Sandbox](ctx, c, "/v1/sandboxes", nil, in)
}

// Sandbox returns a named sandbox without waking it.
func (c *Client) Sandbox(ctx context.Context, ref SandboxRef) (Sandbox, error) {
	return call[Sandbox](ctx, c, http.MethodGet, ref.path(), ref.query(), nil)
}

// ChangeSandboxNetwork changes what a sandbox may connect to.
func (c *Client) ChangeSandboxNetwork(ctx context.Context, ref SandboxRef, in NetworkChange) (Sandbox, error) {
	return call[Sandbox](ctx, c, http.MethodPut, ref.path("network"), ref.query(), in)
}

// SetSandboxTimeout changes when a sandbox is destroyed and after how long it sleeps.
func (c *Client) SetSandboxTimeout(ctx context.Context, ref SandboxRef, in SandboxTimeout) (Sandbox, error) {
	return call[Sandbox](ctx, c, http.MethodPut, ref.path("timeout"), ref.query(), in)
}

// SandboxMetrics returns the resource usage of a sandbox.
func (c *Client) SandboxMetrics(ctx context.Context, ref SandboxRef) (SandboxMetrics, error) {
	return call[SandboxMetrics](ctx, c, http.MethodGet, ref.path("metrics"), ref.query(), nil)
}

// DeleteSandbox destroys a named sandbox.
func (c *Client) DeleteSandbox(ctx context.Context, ref SandboxRef) error {
	return c.do(ctx, http.MethodDelete, ref.path(), ref.query())
}

// SleepSandbox puts a sandbox to sleep immediately; its next use wakes it.
func (c *Client) SleepSandbox(ctx context.Context, ref SandboxRef) (Sandbox, error) {
	return call[Sandbox](ctx, c, http.MethodPost, ref.path("sleep"), ref.query(), nil)
}

// RestartSandbox ends a sandbox's processes and restarts it with its files and its environment's
// current image, limits and network.
func (c *Client) RestartSandbox(ctx context.Context, ref SandboxRef) (Sandbox, error) {
	return call[Sandbox](ctx, c, http.MethodPost, ref.path("restart"), ref.query(), nil)
}

// ForkSandbox copies a sandbox count times, with its processes.
func (c *Client) ForkSandbox(ctx context.Context, ref SandboxRef, count int) ([]Sandbox, error) {
	all, err := create[SandboxList](ctx, c, ref.path("fork"), ref.query("count", strconv.Itoa(count)), nil)
	return all.Data, err
}

// SandboxPorts lists the ports that programs in a sandbox listen on.
func (c *Client) SandboxPorts(ctx context.Context, ref SandboxRef) ([]SandboxPort, error) {
	all, err := call[SandboxPorts](ctx, c, http.MethodGet, ref.path("ports"), ref.query(), nil)
	return all.Data, err
}

// Orphans lists the ids of sandboxes on the machine that have no record.
func (c *Client) Orphans(ctx context.Context) ([]string, error) {
	all, err := call[Orphans](ctx, c, http.MethodGet, "/v1/admin/sandboxes/orphans", nil, nil)
	return all.Data, err
}

// Reap deletes the orphans and returns their ids.
func (c *Client) Reap(ctx context.Context) ([]string, error) {
	all, err := call[Orphans](ctx, c, http.MethodDelete, "/v1/admin/sandboxes/orphans", nil, nil)
	return all.Data, err
}
