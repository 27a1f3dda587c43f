package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Some APIs give a sandbox a single deadline, at which Atoll either deletes the sandbox or puts
// it to sleep. To delete it, Atoll turns off sleep when idle and sets the expiry to the deadline. To
// put it to sleep, Atoll sets sleep when idle, so each use moves the deadline.

// Pauses reports whether a sandbox is put to sleep at its deadline, not deleted.
func Pauses(sb *sandbox.Sandbox) bool { return sb.SleepAfter >= 0 }

// Deadline returns the deadline of a sandbox; ok is false if it has none.
func Deadline(sb *sandbox.Sandbox) (at time.Time, ok bool) {
	switch {
	case Pauses(sb) && sb.State != sandbox.Sleeping:
		return sb.UsedAt.Add(sb.SleepAfter).UTC(), true
	case sb.ExpiresAt != nil:
		return sb.ExpiresAt.UTC(), true
	}
	return time.Time{}, false
}

// SetDeadline sets the deadline of a sandbox to timeout from now.
func (s *Service) SetDeadline(ctx context.Context, r Ref, sb *sandbox.Sandbox, timeout time.Duration) error {
	change := sandbox.Change{Timeout: &timeout}
	if Pauses(sb) {
		change = sandbox.Change{SleepAfter: &timeout}
	}
	_, err := s.update(ctx, r, change)
	return err
}

// ExtendDeadline sets the deadline of a sandbox to timeout from now, unless it is later already.
func (s *Service) ExtendDeadline(ctx context.Context, r Ref, sb *sandbox.Sandbox, timeout time.Duration) error {
	at, ok := Deadline(sb)
	if Pauses(sb) && sb.SleepAfter >= timeout || !Pauses(sb) && (!ok || time.Until(at) >= timeout) {
		return nil
	}
	return s.SetDeadline(ctx, r, sb, timeout)
}

// Pause puts a sandbox to sleep, for which it ends the sandbox's watches with end. While it sleeps,
// it does not expire unless its plan says so.
func (s *Service) Pause(ctx context.Context, r Ref, sb *sandbox.Sandbox, end func()) error {
	if sb.State == sandbox.Sleeping {
		return fault.New(fault.Conflict, "Sandbox %s is paused already", sb.ID)
	}
	end()
	if _, err := s.Sleep(ctx, r); err != nil || Pauses(sb) {
		return err
	}
	return s.SetDeadline(ctx, r, sb, 0)
}

// Resume wakes a sandbox, and extends its deadline to at least timeout from now.
func (s *Service) Resume(ctx context.Context, r Ref, sb *sandbox.Sandbox, timeout time.Duration) error {
	slept := sb.State == sandbox.Sleeping
	if err := s.Within(ctx, r, func(*Use) error { return nil }); err != nil {
		return err
	}
	if slept && !Pauses(sb) {
		return s.SetDeadline(ctx, r, sb, timeout)
	}
	return s.ExtendDeadline(ctx, r, sb, timeout)
}

// Copied is one copy of a sandbox, or the reason for its failure.
type Copied struct {
	Sandbox *sandbox.Sandbox
	Err     error
}

// ForkUntil copies a sandbox, and sets the deadline of each copy to timeout from now. It deletes a
// copy whose deadline cannot be set.
func (s *Service) ForkUntil(ctx context.Context, r Ref, count int, timeout time.Duration) ([]Copied, error) {
	if count < 1 || count > maxFork {
		return nil, fault.New(fault.Invalid, "count must be 1 to %d", maxFork)
	}
	copies, err := s.Fork(ctx, r, count)
	if err != nil {
		return nil, err
	}
	out := make([]Copied, len(copies))
	for i, sb := range copies {
		of := Ref{Caller: r.Caller, Session: sb.Session, Name: string(sb.ID)}
		out[i].Sandbox = sb
		if err := s.SetDeadline(ctx, of, sb, timeout); err != nil {
			out[i].Err = errors.Join(err, s.Delete(ctx, of))
		}
	}
	return out, nil
}
