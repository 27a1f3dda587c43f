package sessiontest

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// held has a call of a thread wait for the client: with the thread, and with the turn.
func held(t *testing.T, s session.Store, runs run.Store) {
	ctx, k, to := t.Context(), talk{t, s, runs, made("ten_1")}, run.Member{Agent: string(agent.NewID()), Version: 3, Name: "Research"}
	must(t, s.Create(ctx, k.v, 0))
	n, err := k.begin("ten_1", k.now(), said("Hi"))
	must(t, err)
	n.answered(call("h1", "look"))
	one := &session.Thread{ID: run.ThreadOf(run.ChildOf(n.run.ID, 1)), Session: k.v.ID, Tenant: "ten_1", Turn: n.run.ID, Agent: agent.ID(to.Agent), Version: to.Version, Name: to.Name}
	must(t, s.OpenThread(ctx, one, 9))
	n.add(run.Entry{Calling: &run.Calling{Call: "h1", Claims: true, Opens: &run.Opens{ID: one.ID, Member: to, Task: "task"}}})
	n.add(run.Entry{Claimed: &run.Claimed{Call: "h1"}})
	child, _, err := n.hand(1, to)
	must(t, err)
	if _, err := s.ResumeThread(ctx, one); err != session.ErrThreadEnded {
		t.Errorf("continue with one that does not wait: %v", err)
	}
	child.answered(call("c1", "write"))
	child.add(run.Entry{Ended: &run.End{Status: run.RequiresAction}})
	got, err := s.Thread(ctx, "ten_1", k.v.ID, one.ID)
	must(t, err)
	if got.Status != session.ThreadWaits || !got.EndedAt.IsZero() {
		t.Errorf("%+v", got)
	}
	if _, err := s.ArchiveThread(ctx, "ten_1", k.v.ID, one.ID); err != session.ErrThreadRuns {
		t.Errorf("archive one that waits: %v", err)
	}
	n.add(run.Entry{Called: &run.Called{Call: "h1", Result: *result("h1").Result, Held: child.state.Held(), Below: run.Spent{Cost: 4}}})
	n.add(run.Entry{Ended: &run.End{Status: run.RequiresAction}})
	calls, err := s.Calls(ctx, "ten_1", k.v.ID)
	must(t, err)
	if len(calls) != 1 || calls[0].Thread != one.ID || calls[0].Call != "h1" || calls[0].Tool != "write" || !calls[0].Approve || calls[0].Child != one.ID || calls[0].Member != to {
		t.Fatalf("%+v", calls)
	}
	events, err := s.After(ctx, "ten_1", k.v.ID, calls[0].Of-1, 1)
	must(t, err)
	if events[0].Kind != run.EventCall || events[0].Thread.ID != one.ID || events[0].Item.Call.ID != "c1" || k.now().Waits != 1 {
		t.Errorf("%+v", events)
	}
	said, err := s.Conversation(ctx, &run.Turn{Session: string(k.v.ID), Until: k.now().Events})
	must(t, err)
	if len(said) != 2 || said[1].Call == nil || said[1].Call.ID != "h1" {
		t.Errorf("the conversation has %+v", said)
	}
	// It goes on once in another turn, however often that is asked for.
	later := *one
	later.Turn = run.NewID()
	for range 2 {
		kept, err := s.ResumeThread(ctx, &later)
		must(t, err)
		if later.Events != got.Events || len(kept.Items) != 3 || len(kept.Waits) != 1 || kept.Waits[0].Call != "c1" || kept.Waits[0].Thread != "" {
			t.Errorf("%+v, %+v", later, kept)
		}
	}
	if _, err := s.ResumeThread(ctx, one); err != session.ErrThreadEnded {
		t.Errorf("continue in a turn that is over: %v", err)
	}
	givenUp(k, calls)
}

// givenUp ends the wait.
func givenUp(k talk, calls []session.Call) {
	ctx := k.Context()
	must(k.T, k.s.Answer(ctx, k.now(), session.Expire(calls, time.Now()), true))
	said, err := k.s.Conversation(ctx, &run.Turn{Session: string(k.v.ID), Until: k.now().Events})
	must(k.T, err)
	if v := k.now(); v.Waits != 0 || len(said) != 3 || said[2].Result == nil || said[2].Result.CallID != "h1" {
		k.Errorf("%+v, %+v", v, said)
	}
	left, err := k.s.Calls(ctx, "ten_1", k.v.ID)
	must(k.T, err)
	if len(left) != 0 {
		k.Errorf("%+v", left)
	}
}
