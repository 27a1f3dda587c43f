package atoll

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strconv"
)

// SandboxFilesystem accesses the files of a sandbox.
type SandboxFilesystem struct {
	c   *Client
	ref SandboxRef
}

// SandboxFiles returns the files of a sandbox.
func (c *Client) SandboxFiles(ref SandboxRef) *SandboxFilesystem { return &SandboxFilesystem{c, ref} }

// List lists a folder, depth levels deep; 0 lists only its direct entries.
func (f *SandboxFilesystem) List(ctx context.Context, folder string, depth int) (SandboxFiles, error) {
	q := f.ref.query("path", folder)
	if depth > 0 {
		q.Set("depth", strconv.Itoa(depth))
	}
	return call[SandboxFiles](ctx, f.c, http.MethodGet, f.ref.path("files", "list"), q, nil)
}

// Stat describes a file.
func (f *SandboxFilesystem) Stat(ctx context.Context, file string) (SandboxFile, error) {
	return call[SandboxFile](ctx, f.c, http.MethodGet, f.ref.path("files", "stat"), f.ref.query("path", file), nil)
}

// Read writes a file to w.
func (f *SandboxFilesystem) Read(ctx context.Context, file string, w io.Writer) error {
	return f.c.download(ctx, w, f.ref.path("files"), f.ref.query("path", file))
}

// Open returns a reader of a file.
func (f *SandboxFilesystem) Open(ctx context.Context, file string) (io.ReadCloser, error) {
	return f.c.open(ctx, f.ref.path("files"), f.ref.query("path", file))
}

// Pack writes a file or folder to w as a tar archive.
func (f *SandboxFilesystem) Pack(ctx context.Context, file string, w io.Writer) error {
	return f.c.download(ctx, w, f.ref.path("archive"), f.ref.query("path", file))
}

// Write stores the bytes of r as a file, with permissions mode, and
// returns its size.
func (f *SandboxFilesystem) Write(ctx context.Context, file string, mode uint32, r io.Reader) (int64, error) {
	out, err := upload[SandboxWritten](ctx, f.c, http.MethodPut, f.ref.path("files"), f.ref.query("path", file, "mode", strconv.FormatUint(uint64(mode), 8)), r)
	return out.Size, err
}

// Append appends the bytes of r to a file and returns the file's size. It does not retry without an
// answer, because a retry could append the bytes twice.
func (f *SandboxFilesystem) Append(ctx context.Context, file string, r io.Reader) (int64, error) {
	out, err := upload[SandboxWritten](ctx, f.c.With(WithRetries(0)), http.MethodPut, f.ref.path("files"), f.ref.query("path", file, "append", "true"), r)
	return out.Size, err
}

// Unpack unpacks a tar archive: its entry "." becomes file.
func (f *SandboxFilesystem) Unpack(ctx context.Context, file string, r io.Reader) (SandboxUnpacked, error) {
	return upload[SandboxUnpacked](ctx, f.c, http.MethodPut, f.ref.path("archive"), f.ref.query("path", file), &form{r, mediaTar})
}

// MakeFolder creates a folder and its missing parents.
func (f *SandboxFilesystem) MakeFolder(ctx context.Context, folder string) (SandboxFile, error) {
	return call[SandboxFile](ctx, f.c, http.MethodPost, f.ref.path("files", "directories"), f.ref.query("path", folder), nil)
}

// Move moves a file or folder; replace allows it to overwrite to.
func (f *SandboxFilesystem) Move(ctx context.Context, from, to string, replace bool) (SandboxFile, error) {
	return call[SandboxFile](ctx, f.c, http.MethodPost, f.ref.path("files", "move"), f.ref.query("from", from, "to", to, "replace", strconv.FormatBool(replace)), nil)
}

// Delete deletes a file or folder; recursive allows it to delete a folder that is not empty.
func (f *SandboxFilesystem) Delete(ctx context.Context, file string, recursive bool) error {
	return f.c.do(ctx, http.MethodDelete, f.ref.path("files"), f.ref.query("path", file, "recursive", strconv.FormatBool(recursive)))
}

// Watch yields the changes in a folder until ctx ends; recursive includes folders below it. After it
// reconnects, it yields a change of the type lost, because it may have missed changes.
func (f *SandboxFilesystem) Watch(ctx context.Context, folder string, recursive bool) iter.Seq2[SandboxChange, error] {
	r := &request{method: http.MethodGet, path: f.ref.path("files", "watch"), query: f.ref.query("path", folder, "recursive", strconv.FormatBool(recursive)), accept: mediaNDJSON}
	return events(ctx, f.c, source[SandboxChange]{
		first:  r,
		again:  func(*SandboxChange) *request { return r },
		hidden: func(ev *SandboxChange) bool { return ev.Type == keepalive },
		ends:   func(*SandboxChange) bool { return false },
		gap:    &SandboxChange{Type: "lost"},
	})
}
