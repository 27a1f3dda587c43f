package blob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
)

const (
	// claimName is the object that says which installation a bucket belongs to.
	claimName = ".atoll-installation"
	// probePrefix begins the names of objects by which servers check that they can use a bucket.
	probePrefix = ".atoll-probe-"
	// claimTime bounds Claim. The clients of buckets retry for longer.
	claimTime = 30 * time.Second
)

// claim is the content of claimName.
type claim struct {
	Installation string `json:"installation"`
	Bucket       string `json:"bucket"` // an id of this bucket, or of the folder that prefix= names
}

// Claim checks that a server can write, read and delete in a store, and makes the store
// belong to an installation. It returns an id that is the same for every server that reaches
// the same store, and fails if the store belongs to another installation.
func (s *Store) Claim(ctx context.Context, installation, server string) (id string, err error) {
	return Claim(ctx, s.bucket, installation, server)
}

// ClaimFolder is Claim for a folder that is no Store. It makes the folder if it is missing.
func ClaimFolder(ctx context.Context, dir, installation, server string) (id string, err error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	b, err := fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return "", err
	}
	defer b.Close()
	return Claim(ctx, b, installation, server)
}

// Claim is Store.Claim for a bucket of OpenBucket.
func Claim(ctx context.Context, b *blob.Bucket, installation, server string) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if err := probe(ctx, b, probePrefix+server); err != nil {
		return "", err
	}
	c, err := readClaim(ctx, b)
	if gcerrors.Code(err) == gcerrors.NotFound {
		if err := writeClaim(ctx, b, installation); err != nil {
			return "", refusedBucket("write", err)
		}
		c, err = readClaim(ctx, b) // another server may have been faster
	}
	if err != nil {
		return "", refusedBucket("read", err)
	}
	if c.Installation != installation {
		return "", fault.New(fault.Conflict, "the bucket belongs to installation %q, and this is installation %q: use another bucket, or a folder of this one by prefix=folder/. If installation %q no longer exists, delete the object %s",
			c.Installation, installation, c.Installation, claimName)
	}
	return c.Bucket, nil
}

// probe writes, reads and deletes an object.
func probe(ctx context.Context, b *blob.Bucket, name string) error {
	want := []byte(time.Now().UTC().Format(time.RFC3339Nano))
	if err := b.WriteAll(ctx, name, want, nil); err != nil {
		return refusedBucket("write", err)
	}
	have, err := b.ReadAll(ctx, name)
	if err != nil {
		return refusedBucket("read", err)
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("the bucket does not return what was written to it: %q instead of %q", have, want)
	}
	if err := b.Delete(ctx, name); err != nil {
		return refusedBucket("delete", err)
	}
	return nil
}

func readClaim(ctx context.Context, b *blob.Bucket) (c claim, err error) {
	raw, err := b.ReadAll(ctx, claimName)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Installation == "" || c.Bucket == "" {
		return c, fmt.Errorf("object %s cannot be read: delete it if no other installation uses the bucket", claimName)
	}
	return c, nil
}

// writeClaim writes the claim unless there is one.
func writeClaim(ctx context.Context, b *blob.Bucket, installation string) error {
	raw, err := json.Marshal(claim{installation, id.New("bkt")})
	if err != nil {
		return err
	}
	err = b.WriteAll(ctx, claimName, raw, &blob.WriterOptions{IfNotExist: true, ContentType: "application/json"})
	switch gcerrors.Code(err) {
	case gcerrors.FailedPrecondition:
		return nil
	case gcerrors.Unimplemented:
		return b.WriteAll(ctx, claimName, raw, &blob.WriterOptions{ContentType: "application/json"})
	}
	return err
}

// refusedBucket says which operation a bucket refused, and what to check.
func refusedBucket(verb string, err error) error {
	next := "check its address, name and keys"
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		next = "create the bucket, or correct its name"
	case gcerrors.Code(err) == gcerrors.PermissionDenied:
		next = "check the keys and their permissions to read, write and delete objects"
	case errors.Is(err, context.DeadlineExceeded):
		next = "it does not answer; check its address"
	}
	return fmt.Errorf("cannot %s an object in the bucket: %s: %w", verb, next, err)
}
