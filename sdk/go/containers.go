package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

const containersPath = "/v1/containers"

// Containers lists the containers that query selects.
func (c *Client) Containers(query url.Values) *Pager[Container] {
	return &Pager[Container]{c: c, path: containersPath, query: query, cursor: "after"}
}

// Container returns a container.
func (c *Client) Container(ctx context.Context, id string) (Container, error) {
	return call[Container](ctx, c, http.MethodGet, under(containersPath, id), nil, nil)
}

// CreateContainer creates a container.
func (c *Client) CreateContainer(ctx context.Context, in NewContainer) (Container, error) {
	return create[Container](ctx, c, containersPath, nil, in)
}

// DeleteContainer stops the programs of a container and deletes its files.
func (c *Client) DeleteContainer(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(containersPath, id), nil)
}

// ContainerFiles accesses the files of a container.
type ContainerFiles struct {
	c  *Client
	id string
}

// ContainerFiles returns the files of a container.
func (c *Client) ContainerFiles(id string) *ContainerFiles { return &ContainerFiles{c, id} }

// List lists the files with their sizes and other metadata.
func (f *ContainerFiles) List() *Pager[ContainerFile] {
	return &Pager[ContainerFile]{c: f.c, path: under(containersPath, f.id, "files"), cursor: "after"}
}

// Get returns the metadata of a file.
func (f *ContainerFiles) Get(ctx context.Context, file string) (ContainerFile, error) {
	return call[ContainerFile](ctx, f.c, http.MethodGet, under(containersPath, f.id, "files", file), nil, nil)
}

// Create stores the bytes of r as a file.
func (f *ContainerFiles) Create(ctx context.Context, filename string, r io.Reader) (ContainerFile, error) {
	form, err := fileForm("file", filename, r, nil)
	if err != nil {
		return ContainerFile{}, err
	}
	return upload[ContainerFile](ctx, f.c, http.MethodPost, under(containersPath, f.id, "files"), nil, form)
}

// Content writes a file to w.
func (f *ContainerFiles) Content(ctx context.Context, file string, w io.Writer) error {
	return f.c.download(ctx, w, under(containersPath, f.id, "files", file, "content"), nil)
}

// Delete deletes a file.
func (f *ContainerFiles) Delete(ctx context.Context, file string) error {
	return f.c.do(ctx, http.MethodDelete, under(containersPath, f.id, "files", file), nil)
}
