package atoll

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strconv"
)

// ListSandboxFiles lists what is in a folder of a sandbox, depth levels below it; 0 is for the
// folder alone.
func (c *Client) ListSandboxFiles(ctx context.Context, ref SandboxRef, folder string, depth int) (SandboxFiles, error) {
	q := ref.query("path", folder)
	if depth > 0 {
		q.Set("depth", strconv.Itoa(depth))
	}
	return call[SandboxFiles](ctx, c, http.MethodGet, ref.path("files", "list"), q, nil)
}

// StatSandboxFile describes a file of a sandbox.
func (c *Client) StatSandboxFile(ctx context.Context, ref SandboxRef, file string) (SandboxFile, error) {
	return call[SandboxFile](ctx, c, http.MethodGet, ref.path("files", "stat"), ref.query("path", file), nil)
}

// ReadSandboxFile writes a file of a sandbox to w.
func (c *Client) ReadSandboxFile(ctx context.Context, ref SandboxRef, file string, w io.Writer) error {
	return c.download(ctx, w, ref.path("files"), ref.query("path", file))
}

// OpenSandboxFile returns a reader of a file of a sandbox.
func (c *Client) OpenSandboxFile(ctx context.Context, ref SandboxRef, file string) (io.ReadCloser, error) {
	return c.open(ctx, ref.path("files"), ref.query("path", file))
}

// PackSandbox writes a file or folder of a sandbox to w, as a tar archive.
func (c *Client) PackSandbox(ctx context.Context, ref SandboxRef, file string, w io.Writer) error {
	return c.download(ctx, w, ref.path("archive"), ref.query("path", file))
}

// WriteSandboxFile stores the bytes of r as a file of a sandbox, with permissions mode, and
// returns its size.
func (c *Client) WriteSandboxFile(ctx context.Context, ref SandboxRef, file string, mode uint32, r io.Reader) (int64, error) {
	out, err := upload[SandboxWritten](ctx, c, http.MethodPut, ref.path("files"), ref.query("path", file, "mode", strconv.FormatUint(uint64(mode), 8)), r)
	return out.Size, err
}

// AppendSandboxFile adds the bytes of r to a file of a sandbox, and returns its size. It is not
// tried again when it has no answer, since that would add them twice.
func (c *Client) AppendSandboxFile(ctx context.Context, ref SandboxRef, file string, r io.Reader) (int64, error) {
	out, err := upload[SandboxWritten](ctx, c.With(WithRetries(0)), http.MethodPut, ref.path("files"), ref.query("path", file, "append", "true"), r)
	return out.Size, err
}

// UnpackSandbox unpacks a tar archive in a sandbox: its entry "." becomes file.
func (c *Client) UnpackSandbox(ctx context.Context, ref SandboxRef, file string, r io.Reader) (SandboxUnpacked, error) {
	return upload[SandboxUnpacked](ctx, c, http.MethodPut, ref.path("archive"), ref.query("path", file), &form{r, mediaTar})
}

// MakeSandboxFolder makes a folder in a sandbox, with those above it.
func (c *Client) MakeSandboxFolder(ctx context.Context, ref SandboxRef, folder string) (SandboxFile, error) {
	return call[SandboxFile](ctx, c, http.MethodPost, ref.path("files", "directories"), ref.query("path", folder), nil)
}

// MoveSandboxFile moves a file or folder of a sandbox; replace allows that to is there already.
func (c *Client) MoveSandboxFile(ctx context.Context, ref SandboxRef, from, to string, replace bool) (SandboxFile, error) {
	return call[SandboxFile](ctx, c, http.MethodPost, ref.path("files", "move"), ref.query("from", from, "to", to, "replace", strconv.FormatBool(replace)), nil)
}

// DeleteSandboxFile deletes a file of a sandbox, or a folder; recursive also one with something
// in it.
func (c *Client) DeleteSandboxFile(ctx context.Context, ref SandboxRef, file string, recursive bool) error {
	return c.do(ctx, http.MethodDelete, ref.path("files"), ref.query("path", file, "recursive", strconv.FormatBool(recursive)))
}

// WatchSandboxFiles yields what changes in a folder of a sandbox, recursive also below it, for
// as long as ctx lasts. After a connection that broke there is a change of the type lost: there
// may have been others meanwhile.
func (c *Client) WatchSandboxFiles(ctx context.Context, ref SandboxRef, folder string, recursive bool) iter.Seq2[SandboxChange, error] {
	r := &request{method: http.MethodGet, path: ref.path("files", "watch"), query: ref.query("path", folder, "recursive", strconv.FormatBool(recursive)), accept: mediaNDJSON}
	return events(ctx, c, source[SandboxChange]{
		first:  r,
		again:  func(*SandboxChange) *request { return r },
		hidden: func(ev *SandboxChange) bool { return ev.Type == keepalive },
		ends:   func(*SandboxChange) bool { return false },
		gap:    &SandboxChange{Type: "lost"},
	})
}
