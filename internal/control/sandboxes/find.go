package sandboxes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Find returns the sandbox of an id that still exists. It finds no sandbox by name.
func (s *Service) Find(ctx context.Context, p *tenant.Principal, t *Trail, id runtime.ID) (r Ref, sb *sandbox.Sandbox, err error) {
	unknown := fault.New(fault.NotFound, "Sandbox %.80q was not found", id)
	if !id.Valid() {
		return r, nil, unknown
	}
	r = s.Refer(ctx, p, t, sandbox.Default, string(id))
	if sb, err = s.Get(ctx, r); err != nil {
		return r, nil, err
	}
	if sb.State == sandbox.Destroyed || sb.State == sandbox.Lost {
		return r, nil, unknown
	}
	return r, sb, nil
}

// Query selects sandboxes. Zero fields select all.
type Query struct {
	Running, Paused bool // both if no field is set
	Metadata        map[string]string
	Template        string
	Since           time.Time
	Oldest          bool       // first
	After           runtime.ID // the last sandbox of the previous page
	Limit           int
}

func (q *Query) selects(sb *sandbox.Sandbox) bool {
	metadata := Metadata(sb)
	for k, v := range q.Metadata {
		if got, ok := metadata[k]; !ok || got != v {
			return false
		}
	}
	is := q.Running
	if sb.State == sandbox.Sleeping {
		is = q.Paused
	}
	return sb.State != sandbox.Lost && (is || !q.Running && !q.Paused) && (q.Template == "" || q.Template == Template(sb)) && (q.Since.IsZero() || sb.CreatedAt.After(q.Since))
}

// Select returns a page of the sandboxes of the caller's environment, including those of other APIs.
// more says that another page follows.
func (s *Service) Select(ctx context.Context, p *tenant.Principal, q *Query) (page []*sandbox.Sandbox, more bool, err error) {
	all, err := s.List(ctx, p, nil)
	if err != nil {
		return nil, false, err
	}
	all = slices.DeleteFunc(all, func(sb *sandbox.Sandbox) bool { return !q.selects(sb) })
	slices.SortFunc(all, func(a, b *sandbox.Sandbox) int {
		order := cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
		if q.Oldest {
			return order
		}
		return -order
	})
	if q.After != "" {
		at := slices.IndexFunc(all, func(sb *sandbox.Sandbox) bool { return sb.ID == q.After })
		if at < 0 {
			return nil, false, fault.New(fault.Invalid, "nextToken belongs to a list that has changed: start again without it")
		}
		all = all[at+1:]
	}
	if len(all) > q.Limit {
		return all[:q.Limit], true, nil
	}
	return all, false, nil
}

// Unreachable says that a sandbox does not answer: it is asleep or has ended.
type Unreachable struct{ error }

func (e *Unreachable) Unwrap() error { return e.error }

func unreachable(format string, args ...any) error {
	return &Unreachable{fault.New(fault.Conflict, format, args...)}
}

// CheckRunning returns an Unreachable error for a sandbox that does not run. It wakes no sandbox.
func (s *Service) CheckRunning(ctx context.Context, r Ref) error {
	sb, err := s.Get(ctx, r)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	if err != nil || sb.Status() != sandbox.Running {
		return unreachable("it does not run")
	}
	return nil
}

// WithinAwake is Within, but does not wake a sandbox that its caller has paused. user is the user that
// the client wants programs to run as; "" for any. It returns an Unreachable error if the sandbox does
// not answer.
func (s *Service) WithinAwake(ctx context.Context, r Ref, user func() (string, error), f func(*Use) error) error {
	if err := s.checkAwake(ctx, r); err != nil {
		return err
	}
	begun := false
	err := s.Within(ctx, r, func(u *Use) error {
		begun = true
		name, err := user()
		if err == nil {
			err = u.checkUser(name)
		}
		if err != nil {
			return err
		}
		return f(u)
	})
	if kind := fault.KindOf(err); !begun && (kind == fault.NotFound || kind == fault.Conflict) || errors.Is(err, process.ErrGone) {
		return &Unreachable{err}
	}
	return err
}

func (s *Service) checkAwake(ctx context.Context, r Ref) error {
	sb, err := s.Get(ctx, r)
	if fault.KindOf(err) == fault.NotFound {
		return &Unreachable{err}
	}
	if err != nil {
		return err
	}
	switch {
	case sb.State == sandbox.Sleeping && !Pauses(sb):
		return unreachable("it is paused; connect to it to resume it")
	case sb.State == sandbox.Lost, sb.State == sandbox.Destroyed:
		return unreachable("it is %s", sb.State)
	}
	return nil
}

// checkUser rejects a user that programs of the sandbox do not run as. The environment of the key
// chooses the user.
func (u *Use) checkUser(name string) error {
	root := u.Sandbox().Permissions.Process.Root
	if name == "" || name == "user" || name == "root" && root {
		return nil
	}
	if name == "root" {
		return fault.New(fault.Invalid, "programs of this sandbox cannot run as root: its environment does not allow it (permissions.process.root)")
	}
	return fault.New(fault.Invalid, "there is no user %.80q in the sandbox: programs run as user", name)
}
