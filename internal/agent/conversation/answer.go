package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// settle adds answers to a turn, with those that were given before, and returns the calls that
// wait for answers yet.
func (s *Service) settle(ctx context.Context, of *session.Session, answers []Answer, t *turn) (left []session.Call, err error) {
	calls, err := s.Store.Calls(ctx, of.Tenant, of.ID)
	if err != nil {
		return nil, err
	}
	answered := map[int64]bool{}
	given := make([]*run.Answer, len(calls)) // to calls of threads
	for i := range answers {
		a := &answers[i]
		e, err := s.call(ctx, of, calls, a)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(calls, func(w session.Call) bool { return w.Of == e.Seq && !w.Approved })
		if at < 0 || answered[e.Seq] {
			return nil, session.ErrAnswered
		}
		if !of.Until.IsZero() && !time.Now().Before(of.Until) {
			return nil, session.ErrExpired
		}
		call := &calls[at]
		if call.Approve != (a.Approve != nil) {
			return nil, fault.New(fault.Conflict, "the call waits for another answer: a call of a tool of yours for a tool_result, any other for a tool_confirmation")
		}
		answered[e.Seq], call.Approved = true, call.Thread != "" || a.Approve != nil && *a.Approve
		answer := a.to(call, e, t.caller.Key.ID)
		t.answers, given[at] = append(t.answers, answer), &answer
	}
	for i, w := range calls {
		switch {
		case w.Approved && w.Thread == "":
			t.approved = append(t.approved, run.Approved{Call: w.Call, Approval: session.EventID(of.ID, w.Of), Event: w.Of})
		case w.Approved && given[i] == nil:
			if given[i], err = s.before(ctx, of, &w); err != nil {
				return nil, err
			}
			fallthrough
		case w.Approved:
			t.approved = run.Resume(t.approved, &w.Wait, given[i])
		case !answered[w.Of]:
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		t.outcome, err = s.underWay(ctx, of)
	}
	return left, err
}

// before is the answer that the client gave to a call of a thread while others waited.
func (s *Service) before(ctx context.Context, of *session.Session, w *session.Call) (*run.Answer, error) {
	out, after := &run.Answer{Of: w.Of, Call: w.Call, Tool: w.Tool, Thread: w.Thread, Member: w.Member, In: w.In}, w.Of
	for {
		page, err := s.Store.After(ctx, of.Tenant, of.ID, after, readPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			e := &page[i]
			if after = e.Seq; e.Of != w.Of {
				continue
			}
			if out.Decision == nil {
				out.Decision = e.Decision
			}
			if e.Item != nil && e.Item.Result != nil {
				out.Result = e.Item.Result
			}
			if e.Tool != nil {
				out.Server = e.Tool.Server
			}
		}
		if len(page) < readPage {
			return out, nil
		}
	}
}

// to is the answer to a call, whose event is e.
func (a *Answer) to(call *session.Call, e *session.Event, key string) run.Answer {
	out := run.Answer{Of: call.Of, Call: call.Call, Tool: call.Tool, Thread: call.Thread, Member: call.Member, In: call.In}
	made := call.Call
	if e.Item != nil && e.Item.Call != nil {
		made = e.Item.Call.ID // of a thread; Call is that of its hand-off
	}
	if e.Tool != nil {
		out.Server = e.Tool.Server
	}
	switch {
	case a.Approve == nil:
		out.Result = &model.Result{CallID: made, Failed: a.Failed, Parts: a.Parts}
	case *a.Approve:
		out.Decision = &run.Decision{Approve: true, Key: key, Reason: a.Reason}
	default:
		out.Decision = &run.Decision{Key: key, Reason: a.Reason}
		out.Result = refused(made, a.Reason)
	}
	return out
}

func refused(call, reason string) *model.Result {
	text := "The user did not allow this call, so it was not made."
	if reason != "" {
		text += " The user's reason: " + reason
	}
	return result(call, text, true)
}

func result(call, text string, failed bool) *model.Result {
	return &model.Result{CallID: call, Failed: failed, Parts: textual(text)}
}

func textual(text string) []model.Part { return []model.Part{{Kind: model.PartText, Text: text}} }

// call finds the event of a call that is answered. One of those that wait and were made in threads
// may be named by its event in the thread, too.
func (s *Service) call(ctx context.Context, of *session.Session, waiting []session.Call, a *Answer) (*session.Event, error) {
	seq, ok := session.EventSeq(of.ID, a.Of)
	for i := range waiting {
		if w := &waiting[i]; w.Thread != "" && session.EventID(session.ID(w.Thread), w.In) == a.Of {
			seq, ok = w.Of, true
		}
	}
	if ok && seq <= of.Events {
		found, err := s.Store.After(ctx, of.Tenant, of.ID, seq-1, 1)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && found[0].Kind == run.EventCall {
			if in := found[0].Thread; a.Thread != "" && (in == nil || in.ID != a.Thread) {
				return nil, invalid("session_thread_id is not the thread that made the call: leave it out")
			}
			return &found[0], nil
		}
	}
	return nil, fault.New(fault.NotFound, "tool_use_id names no call of this session")
}
