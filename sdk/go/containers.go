package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

const containersPath = "/v1/containers"

// Containers returns containers that query selects, at most limit; 0 is for all of them.
func (c *Client) Containers(ctx context.Context, query url.Values, limit int) ([]Container, error) {
	return list[Container](ctx, c, containersPath, query, limit)
}

// Container shows a container.
func (c *Client) Container(ctx context.Context, id string) (Container, error) {
	return call[Container](ctx, c, http.MethodGet, under(containersPath, id), nil, nil)
}

// CreateContainer makes a container.
func (c *Client) CreateContainer(ctx context.Context, in NewContainer) (Container, error) {
	return create[Container](ctx, c, containersPath, nil, in)
}

// DeleteContainer ends a container.
func (c *Client) DeleteContainer(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(containersPath, id), nil)
}

// ContainerFiles returns files of a container, at most limit; 0 is for all of them.
func (c *Client) ContainerFiles(ctx context.Context, id string, limit int) ([]ContainerFile, error) {
	return list[ContainerFile](ctx, c, under(containersPath, id, "files"), nil, limit)
}

// ContainerFile shows a file of a container.
func (c *Client) ContainerFile(ctx context.Context, id, file string) (ContainerFile, error) {
	return call[ContainerFile](ctx, c, http.MethodGet, under(containersPath, id, "files", file), nil, nil)
}

// AddContainerFile stores the bytes of r as a file of a container.
func (c *Client) AddContainerFile(ctx context.Context, id, filename string, r io.Reader) (ContainerFile, error) {
	f, err := fileForm("file", filename, r, nil)
	if err != nil {
		return ContainerFile{}, err
	}
	return upload[ContainerFile](ctx, c, http.MethodPost, under(containersPath, id, "files"), nil, f)
}

// ReadContainerFile writes a file of a container to w.
func (c *Client) ReadContainerFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, w, under(containersPath, id, "files", file, "content"), nil)
}

// DeleteContainerFile deletes a file of a container.
func (c *Client) DeleteContainerFile(ctx context.Context, id, file string) error {
	return c.do(ctx, http.MethodDelete, under(containersPath, id, "files", file), nil)
}
