// Package blob keeps bytes under names, in a folder or in a bucket of S3, Google
// Cloud Storage or Azure.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Store is an open store. Names are paths with slashes, such as
// "outputs/tenant/trace/stdout".
type Store struct {
	bucket  *blob.Bucket
	dir     string       // of a store that is a folder
	folders sync.RWMutex // read: folders are made; write: empty ones are removed
}

// Open opens the store that a URL names: file:///var/lib/atoll/blobs (the
// folder is made when it is missing), s3://bucket?region=…, and where the program has
// package provider gs://bucket, azblob://container. Of a bucket, the parameter
// prefix=folder/ puts everything below a folder. What a driver asks for besides comes
// from its own environment.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	s := &Store{}
	u, err := parse(rawURL)
	switch {
	case err != nil:
	case u.Scheme == fileblob.Scheme:
		s.dir = u.Path
		s.bucket, err = openFolder(u)
	default:
		s.bucket, err = openBucket(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	return s, nil
}

// OpenBucket opens the bucket that a URL names, as Open does, for a use that has
// rules of its own.
func OpenBucket(ctx context.Context, rawURL string) (*blob.Bucket, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	return openBucket(ctx, u)
}

func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // all but the URL, which may hold keys
	}
	if err != nil {
		return nil, fmt.Errorf("its URL cannot be read: %w", err)
	}
	return u, nil
}

func openBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	if q := u.Query(); u.Scheme == s3blob.Scheme && !q.Has(s3Validation) {
		q.Set(s3Validation, "when_required") // a part of a blob has no checksum, and the driver would log that each time
		u.RawQuery = q.Encode()
	}
	return blob.OpenBucket(ctx, u.String())
}

const s3Validation = "response_checksum_validation"

// Close lets go of the store.
func (s *Store) Close() error { return s.bucket.Close() }

// maxName bounds a name, in bytes; a part of it, between slashes, is bounded
// by what a file may be called.
const (
	maxName = 900
	maxPart = 200
)

// check refuses a name that is not the same in every store, or that could lead
// out of a folder.
func check(name string) error {
	bad := func(why string) error { return fault.New(fault.Invalid, "blob name %q %s", name, why) }
	if name == "" || len(name) > maxName {
		return bad(fmt.Sprintf("must be 1 to %d bytes", maxName))
	}
	if !utf8.ValidString(name) {
		return bad("must be valid UTF-8")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return bad("must not have empty parts, . or ..")
		case len(part) > maxPart:
			return bad(fmt.Sprintf("must have parts of at most %d bytes", maxPart))
		case strings.HasSuffix(part, tempSuffix):
			return bad("must not end in " + tempSuffix)
		}
		for _, r := range part {
			if r < ' ' || r == 0x7f || r == '\\' {
				return bad("must not have control characters or backslashes")
			}
		}
	}
	return nil
}

// fail turns an error of the store into one that callers can tell apart.
func fail(verb, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fault.Wrap(fault.NotFound, err, "stored data not found")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s blob %s: %w", verb, name, err)
	default:
		return fault.Wrap(fault.Unavailable, fmt.Errorf("%s blob %s: %w", verb, name, err), "stored data cannot be reached; retry in a few seconds")
	}
}

// Put stores everything r has under a name, in place of what was there. The
// name has the old bytes until it has all the new ones. An error of r is
// returned, and nothing stored.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	if err := check(name); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.writer(ctx, name)
	if err != nil {
		return fail("write", name, err)
	}
	src := &source{r: r}
	_, err = io.Copy(w, src)
	if err != nil {
		cancel() // makes Close drop what was written
		_ = w.Close()
		if src.err != nil {
			return src.err
		}
		return fail("write", name, err)
	}
	return fail("write", name, w.Close())
}

// writer begins a Put: it makes the folders of a name, and a file in the last.
func (s *Store) writer(ctx context.Context, name string) (*blob.Writer, error) {
	s.folders.RLock()
	defer s.folders.RUnlock()
	return s.bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: "application/octet-stream"})
}

// source remembers a reader's error, to tell it from the store's.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Open reads limit bytes from an offset on, or to the end with a limit below 0.
// Fewer bytes follow when the data end earlier.
func (s *Store) Open(ctx context.Context, name string, offset, limit int64) (io.ReadCloser, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fault.New(fault.Invalid, "offset must not be negative")
	}
	if offset > 0 { // stores differ in what they say about an offset past the end
		size, err := s.Size(ctx, name)
		if err != nil {
			return nil, err
		}
		if offset >= size {
			return io.NopCloser(strings.NewReader("")), nil
		}
	}
	r, err := s.bucket.NewRangeReader(ctx, name, offset, limit, nil)
	if err == nil {
		return r, nil
	}
	if s.ends(ctx, name, offset, err) {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return nil, fail("read", name, err)
}

// ends reports whether a read that failed with err failed because a name has no byte at
// an offset: S3 answers 416 to any range of an empty object.
func (s *Store) ends(ctx context.Context, name string, offset int64, err error) bool {
	if gcerrors.Code(err) == gcerrors.NotFound || ctx.Err() != nil {
		return false
	}
	size, err := s.Size(ctx, name)
	return err == nil && size <= offset
}

// Size is how many bytes a name has.
func (s *Store) Size(ctx context.Context, name string) (int64, error) {
	if err := check(name); err != nil {
		return 0, err
	}
	a, err := s.bucket.Attributes(ctx, name)
	if err != nil {
		return 0, fail("look at", name, err)
	}
	return a.Size, nil
}

// Delete removes a name; it is no error if there is none.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := check(name); err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fail("delete", name, err)
	}
	s.prune(name)
	return nil
}

// DeletePrefix removes every name below a folder, such as "outputs/tenant".
func (s *Store) DeletePrefix(ctx context.Context, folder string) error {
	if err := check(folder); err != nil {
		return err
	}
	list := s.bucket.List(&blob.ListOptions{Prefix: folder + "/"})
	for {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fail("list", folder, err)
		}
		if err := s.bucket.Delete(ctx, o.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return fail("delete", o.Key, err)
		}
		s.prune(o.Key)
	}
}
