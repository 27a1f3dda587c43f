package bucket

import (
	"context"
	"errors"

	"gocloud.dev/blob"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// Buckets opens what connections lead to.
type Buckets struct {
	Allow   outbound.List // where buckets of tenants may be besides public addresses
	Volumes *blob.Bucket  // the operator's, which has the managed volumes; nil where those are folders
}

// Has reports whether what a connection of a kind leads to is in a bucket.
func (b *Buckets) Has(kind storage.Kind) bool { return kind != storage.Volume || b.Volumes != nil }

// Objects are what a mount shows of a bucket.
type Objects struct {
	*blob.Bucket
	Prefix string // of their keys; "" or one that ends in a slash
	shared bool   // the bucket is for others too
}

// Open opens what a mount of a tenant leads to. Of the operator's bucket that is
// what lies below the tenant's name and the connection's.
func (b *Buckets) Open(ctx context.Context, tenant string, m *storage.Mount) (*Objects, error) {
	o := &Objects{}
	if m.Path != "" {
		o.Prefix = string(m.Path) + "/"
	}
	var err error
	switch {
	case m.Kind != storage.Volume:
		o.Bucket, err = open(ctx, m.Kind, m.Target, b.Allow)
	case b.Volumes == nil:
		err = errors.New("volumes are not in a bucket")
	default:
		o.Bucket, o.shared = b.Volumes, true
		o.Prefix = tenant + "/" + m.Connection + "/" + o.Prefix
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Close lets go of the bucket.
func (o *Objects) Close() error {
	if o.shared {
		return nil
	}
	return o.Bucket.Close()
}
