package atoll

import (
	"context"
	"io"
	"net/http"
	"strconv"
)

// StatSandboxFile describes a file of a sandbox.
func (c *Client) StatSandboxFile(ctx context.Context, ref SandboxRef, file string) (SandboxFile, error) {
	return call[SandboxFile](ctx, c, http.MethodGet, ref.path("files", "stat"), ref.query("path", file), nil)
}

// ReadSandboxFile writes a file of a sandbox to w.
func (c *Client) ReadSandboxFile(ctx context.Context, ref SandboxRef, file string, w io.Writer) error {
	return c.download(ctx, w, ref.path("files"), ref.query("path", file), mediaAny)
}

// PackSandbox writes a file or folder of a sandbox to w, as a tar archive.
func (c *Client) PackSandbox(ctx context.Context, ref SandboxRef, file string, w io.Writer) error {
	return c.download(ctx, w, ref.path("archive"), ref.query("path", file), mediaAny)
}

// WriteSandboxFile stores the bytes of r as a file of a sandbox, with permissions mode.
func (c *Client) WriteSandboxFile(ctx context.Context, ref SandboxRef, file string, mode uint32, r io.Reader) error {
	return c.upload(ctx, http.MethodPut, ref.path("files"), ref.query("path", file, "mode", strconv.FormatUint(uint64(mode), 8)), r)
}

// UnpackSandbox unpacks a tar archive in a sandbox: its entry "." becomes file.
func (c *Client) UnpackSandbox(ctx context.Context, ref SandboxRef, file string, r io.Reader) error {
	return c.upload(ctx, http.MethodPut, ref.path("archive"), ref.query("path", file), r)
}
