package bucket

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// listTime bounds the listing of a folder.
const listTime = time.Minute

// List lists the folder that a mount of a tenant would show. One that is not there
// is empty.
func (b *Buckets) List(ctx context.Context, tenant string, m *storage.Mount) ([]storage.File, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	o, err := b.Open(ctx, tenant, m)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the connection cannot be opened; have its credentials checked")
	}
	defer o.Close()
	out := []storage.File{}
	all := o.List(&blob.ListOptions{Prefix: o.Prefix, Delimiter: "/"})
	for {
		entry, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the bucket cannot be listed; retry in a few seconds, or have its credentials checked")
		}
		name := strings.TrimSuffix(strings.TrimPrefix(entry.Key, o.Prefix), "/")
		if name == "" {
			continue // what stands for the folder itself
		}
		if len(out) == storage.MaxList {
			return nil, storage.ErrManyEntries
		}
		out = append(out, storage.File{Name: name, Path: string(m.Path.Join(storage.Path(name))), Size: entry.Size, Modified: entry.ModTime.UTC(), IsFolder: entry.IsDir})
	}
}
