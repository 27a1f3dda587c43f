package bucket

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/storage"
)

// listTime bounds the listing of a folder.
const listTime = time.Minute

// List lists a folder of a bucket. One that is not there is empty.
func List(ctx context.Context, m storage.Mount, allow outbound.List) ([]storage.File, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	b, err := Open(ctx, m.Kind, m.Target, allow)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the connection cannot be opened; have its credentials checked")
	}
	defer b.Close()
	prefix := string(m.Path)
	if prefix != "" {
		prefix += "/"
	}
	out := []storage.File{}
	all := b.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		o, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the bucket cannot be listed; retry after a moment, or have its credentials checked")
		}
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/")
		if name == "" {
			continue // what stands for the folder itself
		}
		if len(out) == storage.MaxList {
			return nil, fault.New(fault.Invalid, "the folder has more than %d entries; name one below it", storage.MaxList)
		}
		out = append(out, storage.File{Name: name, Path: string(m.Path.Join(storage.Path(name))), Size: o.Size, Modified: o.ModTime.UTC(), IsFolder: o.IsDir})
	}
}
