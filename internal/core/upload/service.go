package upload

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Service is the files of tenants, records and bytes.
type Service struct {
	Store    Store
	Contents Contents
	Limits   Limits // of each tenant
	Log      *slog.Logger
}

const (
	// stale is how long ago an upload was begun that is not believed to end any more.
	stale = 24 * time.Hour
	// tidy is how long removing what an upload has left may take.
	tidy = 30 * time.Second
)

// Upload stores the content of r as a file of the caller's tenant. The caller sets the Name and
// MediaType of f, and the Size known so far; Upload sets the rest. It calls rest at the end of r to
// learn the life of the file, 0 for no expiry. A failed upload leaves nothing behind.
func (s *Service) Upload(ctx context.Context, p *tenant.Principal, f *File, r io.Reader, rest func() (time.Duration, error)) (err error) {
	f.ID, f.Tenant = NewID(), p.Tenant.ID
	if err := s.Limits.Fits(f.Size); err != nil {
		return err
	}
	if err := s.Store.Begin(ctx, f, s.Limits); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.discard(ctx, f, s.Store.Drop)
		}
	}()
	if err := s.Contents.put(ctx, f, &bounded{r: r, limits: s.Limits}); err != nil {
		return err
	}
	life, err := rest()
	if err != nil {
		return err
	}
	return s.Store.Finish(ctx, f, s.Limits, life, p.Event("file/"+string(f.ID), "", "uploaded"))
}

// bounded fails once more has been read than a file may have.
type bounded struct {
	r      io.Reader
	limits Limits
	n      int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if over := b.limits.Fits(b.n); over != nil {
		return n, over
	}
	return n, err
}

// discard removes a file after first, even if ctx has ended; what cannot be removed now, Sweep
// removes.
func (s *Service) discard(ctx context.Context, f *File, first func(context.Context, ID) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidy)
	defer cancel()
	err := first(ctx, f.ID)
	if err == nil {
		err = s.forget(ctx, f)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "cannot delete the data of a deleted file yet; the next sweep retries", "file_id", string(f.ID), "error", err)
	}
}

func (s *Service) forget(ctx context.Context, f *File) error {
	if err := s.Contents.remove(ctx, f); err != nil {
		return err
	}
	return s.Store.Forget(ctx, f.ID)
}

// Get returns a file of a tenant by an id that a caller gave.
func (s *Service) Get(ctx context.Context, t tenant.ID, id string) (*File, error) {
	if !ID(id).Valid() {
		return nil, ErrNotFound
	}
	return s.Store.Get(ctx, t, ID(id))
}

// Open returns the bytes of a file.
func (s *Service) Open(ctx context.Context, f *File) io.ReadSeekCloser {
	return s.Contents.open(ctx, f)
}

// Whole implements execution.Uploads.
func (s *Service) Whole(ctx context.Context, t tenant.ID, of execution.FileRef) ([]byte, error) {
	f, err := s.Get(ctx, t, of.ID)
	if err != nil {
		return nil, err
	}
	if f.Size > execution.MaxCopies {
		return nil, fault.New(fault.TooLarge, "the file has more than %d bytes", execution.MaxCopies)
	}
	body := s.Open(ctx, f)
	defer body.Close()
	return io.ReadAll(body)
}

var _ execution.Uploads = (*Service)(nil)

// Read is Get and Open in one.
func (s *Service) Read(ctx context.Context, t tenant.ID, id ID) (io.ReadCloser, error) {
	f, err := s.Get(ctx, t, string(id))
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, f), nil
}

// MaxFind is the largest number of files that Find looks for at once.
const MaxFind = 100

// Find returns the files of a tenant among ids, newest first. It skips unknown ids.
func (s *Service) Find(ctx context.Context, t tenant.ID, ids []string) ([]File, error) {
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > MaxFind {
		return nil, fault.New(fault.Invalid, "ids must be at most %d", MaxFind)
	}
	var valid []ID
	for _, id := range ids {
		if ID(id).Valid() {
			valid = append(valid, ID(id))
		}
	}
	return s.Store.Find(ctx, t, valid)
}

// Delete deletes a file of the caller's tenant. If its bytes remain, the next Sweep removes them.
func (s *Service) Delete(ctx context.Context, p *tenant.Principal, id string) error {
	f, err := s.Get(ctx, p.Tenant.ID, id)
	if err != nil {
		return err
	}
	if err := s.Store.Delete(ctx, f.Tenant, f.ID, p.Event("file/"+id, "", "deleted")); err != nil {
		return err
	}
	s.discard(ctx, f, func(context.Context, ID) error { return nil })
	return nil
}

// Sweep removes up to most files that are deleted or have expired, and what uploads have left
// whose process ended. It returns how many.
func (s *Service) Sweep(ctx context.Context, most int) (int, error) {
	gone, err := s.Store.Gone(ctx, stale, most)
	if err != nil {
		return 0, err
	}
	var errs []error
	for i := range gone {
		if err := s.forget(ctx, &gone[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return len(gone) - len(errs), errors.Join(errs...)
}
