package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Threads lists the threads of the key's tenant by id.
func (c *Client) Threads(query url.Values) *Pager[Thread] {
	return &Pager[Thread]{c: c, path: "/v1/threads", query: query}
}

// Thread returns a thread's record.
func (c *Client) Thread(ctx context.Context, id string) (Thread, error) {
	return call[Thread](ctx, c, http.MethodGet, threadPath(id), nil, nil)
}

// ChangeThread sets when a thread is deleted.
func (c *Client) ChangeThread(ctx context.Context, id string, in ThreadChange) (Thread, error) {
	return call[Thread](ctx, c, http.MethodPatch, threadPath(id), nil, in)
}

// DeleteThread deletes a thread.
func (c *Client) DeleteThread(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, threadPath(id), nil)
}

// ExportThread writes all files of a thread to w as a tar archive.
func (c *Client) ExportThread(ctx context.Context, id string, w io.Writer) error {
	return c.download(ctx, w, threadPath(id)+"/archive", nil)
}

// ImportThread replaces the files of a thread with those in a tar archive.
func (c *Client) ImportThread(ctx context.Context, id string, r io.Reader) (Thread, error) {
	return upload[Thread](ctx, c, http.MethodPut, threadPath(id)+"/archive", nil, &form{r, mediaTar})
}

// ThreadFiles accesses the files of a thread.
type ThreadFiles struct {
	c  *Client
	id string
}

// ThreadFiles returns the files of a thread.
func (c *Client) ThreadFiles(id string) *ThreadFiles { return &ThreadFiles{c, id} }

// List lists a folder; "" lists the home directory.
func (f *ThreadFiles) List(folder string) *Pager[File] {
	return &Pager[File]{whole: func(ctx context.Context) ([]File, error) {
		all, err := call[FilesListResponse](ctx, f.c, http.MethodGet, threadPath(f.id)+"/files", url.Values{"path": {folder}}, nil)
		return all.Files, err
	}}
}

// Read writes a file to w.
func (f *ThreadFiles) Read(ctx context.Context, file string, w io.Writer) error {
	return f.c.download(ctx, w, threadFile(f.id, file), nil)
}

// Open returns a reader of a file.
func (f *ThreadFiles) Open(ctx context.Context, file string) (io.ReadCloser, error) {
	return f.c.open(ctx, threadFile(f.id, file), nil)
}

// Write stores the bytes of r as a file.
func (f *ThreadFiles) Write(ctx context.Context, file string, r io.Reader) (File, error) {
	return upload[File](ctx, f.c, http.MethodPut, threadFile(f.id, file), nil, r)
}

// Delete deletes a file or folder.
func (f *ThreadFiles) Delete(ctx context.Context, file string) error {
	return f.c.do(ctx, http.MethodDelete, threadFile(f.id, file), nil)
}

// Sign returns a URL that can read or write a file without a key until it expires.
func (f *ThreadFiles) Sign(ctx context.Context, in SignRequest) (SignedURL, error) {
	return call[SignedURL](ctx, f.c, http.MethodPost, threadPath(f.id)+"/signed_urls", nil, in)
}

func threadPath(id string) string { return under("/v1/threads", id) }

func threadFile(id, file string) string {
	return under(threadPath(id)+"/files", strings.Split(strings.Trim(file, "/"), "/")...)
}

// StorageFiles lists a folder of a thread or volume.
func (c *Client) StorageFiles(in FilesListRequest) *Pager[File] {
	return &Pager[File]{whole: func(ctx context.Context) ([]File, error) {
		all, err := call[FilesListResponse](ctx, c, http.MethodPost, "/v1/files/list", nil, in)
		return all.Files, err
	}}
}

// UploadURL returns a request that can write a file of a thread or volume without a key until it
// expires.
func (c *Client) UploadURL(ctx context.Context, in UploadRequest) (FileURL, error) {
	return call[FileURL](ctx, c, http.MethodPost, "/v1/files/upload_url", nil, in)
}

// DownloadURL returns a request that can read a file of a thread or volume without a key until it
// expires.
func (c *Client) DownloadURL(ctx context.Context, in DownloadRequest) (FileURL, error) {
	return call[FileURL](ctx, c, http.MethodPost, "/v1/files/download_url", nil, in)
}

// File is a file or folder of a thread or connection.
type File = FileEntry
