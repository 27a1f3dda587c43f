package home

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// want is a chunk that is to be read.
type want struct {
	ref
	size int                     // of its data
	use  func(data []byte) error // data is reused once it returns
}

const (
	fetches = 8        // requests at the same time
	runSize = 4 << 20  // about what one request reads
	runGap  = 64 << 10 // that is read and dropped rather than asked around
)

// fetch reads chunks and passes each to its use, many at the same time.
func (s *Store) fetch(ctx context.Context, t *tenantStore, wants []want) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetches)
	for _, run := range runs(wants) {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return s.fetchRun(ctx, t, run) })
	}
	return group.Wait()
}

// runs sorts chunks by their place, packs in the order they first occur in, and
// cuts them into pieces that are read with one request each.
func runs(wants []want) (all [][]want) {
	no := map[pack]int{}
	for _, w := range wants {
		if _, ok := no[w.pack]; !ok {
			no[w.pack] = len(no)
		}
	}
	slices.SortStableFunc(wants, func(a, b want) int {
		return cmp.Or(cmp.Compare(no[a.pack], no[b.pack]), cmp.Compare(a.offset, b.offset))
	})
	for len(wants) > 0 {
		n := 1
		for n < len(wants) && wants[n].pack == wants[0].pack && wants[n].end()-int64(wants[0].offset) <= runSize &&
			int64(wants[n].offset)-wants[n-1].end() <= runGap {
			n++
		}
		all = append(all, wants[:n])
		wants = wants[n:]
	}
	return all
}

func (r ref) end() int64 { return int64(r.offset) + int64(r.stored) }

// fetchRun reads chunks of one pack that are near to each other.
func (s *Store) fetchRun(ctx context.Context, t *tenantStore, run []want) error {
	what := "pack " + packName(run[0].pack)
	aead, err := t.keys.cipher(what)
	if err != nil {
		return err
	}
	begin := int64(run[0].offset)
	end := begin
	for _, w := range run {
		end = max(end, w.end())
	}
	r, err := s.cfg.Blobs.Range(ctx, t.pack(run[0].pack), begin, end-begin)
	if err != nil {
		return unreachable(what, err)
	}
	defer r.Close()
	sealed, plain := buffers.Get().(*[]byte), buffers.Get().(*[]byte)
	defer func() { buffers.Put(sealed); buffers.Put(plain) }()
	at := begin
	for i, w := range run {
		if i == 0 || w.offset != run[i-1].offset {
			if int64(w.offset) < at {
				return corrupt("%s: chunks overlap", what)
			}
			if _, err := io.CopyN(io.Discard, r, int64(w.offset)-at); err != nil {
				return unreachable(what, err)
			}
			at = w.end()
			*sealed = slices.Grow((*sealed)[:0], int(w.stored))[:w.stored]
			if _, err := io.ReadFull(r, *sealed); err != nil {
				return unreachable(what, err)
			}
			if *sealed, err = aead.Open((*sealed)[:0], nonce(int64(w.offset)), *sealed, place(w.sum, w.size)); err != nil {
				return corrupt("%s, chunk at %d: %v", what, w.offset, err)
			}
			if *plain, err = decompress((*plain)[:0], *sealed, w.size); err != nil {
				return err
			}
		} else if w.sum != run[i-1].sum || w.size != run[i-1].size {
			return corrupt("%s: two chunks at %d", what, w.offset)
		}
		if err := w.use(*plain); err != nil {
			return err
		}
	}
	return nil
}

// unreachable is a failed read of an object: for good if it ends early or is
// gone, for now otherwise.
func unreachable(what string, err error) error {
	switch {
	case errors.Is(err, storage.ErrBlobShort), errors.Is(err, io.EOF):
		return corrupt("%s ends early", what)
	case fault.KindOf(err) == fault.NotFound:
		return corrupt("%s is missing", what)
	case fault.KindOf(err) != fault.Internal, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "stored data cannot be reached; retry in a few seconds")
}
