package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Threads returns threads of the key's tenant by id, at most limit; 0 is for all of them.
func (c *Client) Threads(ctx context.Context, query url.Values, limit int) ([]Thread, error) {
	return list[Thread](ctx, c, "/v1/threads", query, limit)
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

// ThreadFiles lists a folder of a thread.
func (c *Client) ThreadFiles(ctx context.Context, id, folder string) ([]File, error) {
	all, err := call[FilesListResponse](ctx, c, http.MethodGet, threadPath(id)+"/files", url.Values{"path": {folder}}, nil)
	return all.Files, err
}

// ReadThreadFile writes a file of a thread to w.
func (c *Client) ReadThreadFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, w, threadFile(id, file), nil)
}

// ExportThread writes all files of a thread to w, as a tar archive.
func (c *Client) ExportThread(ctx context.Context, id string, w io.Writer) error {
	return c.download(ctx, w, threadPath(id)+"/archive", nil)
}

// OpenThreadFile returns a reader of a file of a thread.
func (c *Client) OpenThreadFile(ctx context.Context, id, file string) (io.ReadCloser, error) {
	return c.open(ctx, threadFile(id, file), nil)
}

// WriteThreadFile stores the bytes of r as a file of a thread.
func (c *Client) WriteThreadFile(ctx context.Context, id, file string, r io.Reader) (File, error) {
	return upload[File](ctx, c, http.MethodPut, threadFile(id, file), nil, r)
}

// ImportThread replaces the files of a thread by those of a tar archive.
func (c *Client) ImportThread(ctx context.Context, id string, r io.Reader) (Thread, error) {
	return upload[Thread](ctx, c, http.MethodPut, threadPath(id)+"/archive", nil, &form{r, mediaTar})
}

// SignThreadFile makes a URL by which a file of a thread can be read or written without a key,
// for a time.
func (c *Client) SignThreadFile(ctx context.Context, id string, in SignRequest) (SignedURL, error) {
	return call[SignedURL](ctx, c, http.MethodPost, threadPath(id)+"/signed_urls", nil, in)
}

// DeleteThreadFile deletes a file or folder of a thread.
func (c *Client) DeleteThreadFile(ctx context.Context, id, file string) error {
	return c.do(ctx, http.MethodDelete, threadFile(id, file), nil)
}

func threadPath(id string) string { return under("/v1/threads", id) }

func threadFile(id, file string) string {
	return under(threadPath(id)+"/files", strings.Split(strings.Trim(file, "/"), "/")...)
}

// StorageFiles lists a folder of a thread or volume.
func (c *Client) StorageFiles(ctx context.Context, in FilesListRequest) ([]File, error) {
	all, err := call[FilesListResponse](ctx, c, http.MethodPost, "/v1/files/list", nil, in)
	return all.Files, err
}

// UploadURL makes a request with which a file of a thread or volume can be written without a
// key, for a time.
func (c *Client) UploadURL(ctx context.Context, in UploadRequest) (FileURL, error) {
	return call[FileURL](ctx, c, http.MethodPost, "/v1/files/upload_url", nil, in)
}

// DownloadURL makes a request with which a file of a thread or volume can be read without a
// key, for a time.
func (c *Client) DownloadURL(ctx context.Context, in DownloadRequest) (FileURL, error) {
	return call[FileURL](ctx, c, http.MethodPost, "/v1/files/download_url", nil, in)
}

// File is a file or folder of a thread or connection.
type File = FileEntry
