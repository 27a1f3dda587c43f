package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// DeleteVolumes deletes all volumes of a tenant from the operator's bucket.
func (b *Buckets) DeleteVolumes(ctx context.Context, tenant string) error {
	list := b.Volumes.List(&blob.ListOptions{Prefix: tenant + "/"})
	for {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the volumes of a tenant: %w", err)
		}
		if err := b.Volumes.Delete(ctx, o.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return fmt.Errorf("delete %s: %w", o.Key, err)
		}
	}
}
