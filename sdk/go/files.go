package atoll

import (
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const filesPath = "/v1/files"

// fileForm is a form with one file, whose bytes are read as they are sent.
func fileForm(field, filename string, r io.Reader, fields map[string]string) (*form, error) {
	var head strings.Builder
	w := multipart.NewWriter(&head)
	for name, value := range fields {
		if err := w.WriteField(name, value); err != nil {
			return nil, err
		}
	}
	if _, err := w.CreateFormFile(field, filename); err != nil {
		return nil, err
	}
	tail := fmt.Sprintf("\r\n--%s--\r\n", w.Boundary())
	return &form{io.MultiReader(strings.NewReader(head.String()), r, strings.NewReader(tail)), w.FormDataContentType()}, nil
}

// UploadFile stores the bytes of r as a file of the tenant. Messages and sandboxes refer to it by its
// id. Atoll deletes the file after keep; 0 means never.
func (c *Client) UploadFile(ctx context.Context, filename string, r io.Reader, keep time.Duration) (UploadedFile, error) {
	fields := map[string]string{}
	if keep > 0 {
		fields["expires_in_seconds"] = strconv.FormatInt(int64(keep/time.Second), 10)
	}
	f, err := fileForm("file", filename, r, fields)
	if err != nil {
		return UploadedFile{}, err
	}
	return upload[UploadedFile](ctx, c, http.MethodPost, filesPath, nil, f)
}

// Files returns uploaded files that query selects, newest first.
func (c *Client) Files(query url.Values) *Pager[UploadedFile] {
	return &Pager[UploadedFile]{c: c, path: filesPath, query: query}
}

// File returns the metadata of an uploaded file.
func (c *Client) File(ctx context.Context, id string) (UploadedFile, error) {
	return call[UploadedFile](ctx, c, http.MethodGet, under(filesPath, id), nil, nil)
}

// ReadFile writes an uploaded file to w.
func (c *Client) ReadFile(ctx context.Context, id string, w io.Writer) error {
	return c.download(ctx, w, under(filesPath, id, "content"), nil)
}

// OpenFile returns a reader of an uploaded file.
func (c *Client) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, under(filesPath, id, "content"), nil)
}

// DeleteFile deletes an uploaded file.
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(filesPath, id), nil)
}
