package store_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/test/atolltest"
)

// asking stores a response that has ended and waits for approvals.
func asking(t *testing.T, db *store.DB, tenant string, within time.Duration, items ...string) *run.Run {
	t.Helper()
	r := &run.Run{ID: run.NewID(), Tenant: tenant, Key: "key_1", Environment: "env_1", Sandbox: "sbx_1", Keep: time.Hour, Status: run.InProgress, CreatedAt: time.Now()}
	lease, err := db.Runs().Create(t.Context(), r, []run.Entry{{Seq: 1, At: time.Now(), Begun: &run.Request{Models: []string{"m"}, Input: []model.Item{model.Text(model.User, "x")}}}}, "here", 0, nil)
	must(t, err)
	var left run.Trace
	for _, item := range items {
		a := run.Asks{Item: item, Approval: run.Approval{CallID: "call_" + item, Server: "shop", Tool: "order", Arguments: `{"what":"tea"}`}, At: time.Now()}
		if within != 0 {
			a.Until = a.At.Add(within)
		}
		left.Asks = append(left.Asks, a)
	}
	must(t, db.Runs().Append(t.Context(), r.ID, lease, []run.Entry{{Seq: 2, At: time.Now(), Ended: &run.End{Status: run.Completed}}}, left))
	return r
}

// goOn starts a response that continues another with the client's decisions.
func goOn(t *testing.T, db *store.DB, of *run.Run, said ...run.Said) (*run.Run, error) {
	t.Helper()
	r := &run.Run{ID: run.NewID(), Tenant: of.Tenant, Key: "key_2", Environment: "env_1", Sandbox: of.Sandbox, Keep: time.Hour, Status: run.InProgress, CreatedAt: time.Now()}
	_, err := db.Runs().Create(t.Context(), r, []run.Entry{{Seq: 1, At: time.Now(), Begun: &run.Request{Models: []string{"m"}, Verdicts: said}}}, "here", 0, nil)
	return r, err
}

func approvalsOf(t *testing.T, db *store.DB, f approval.Filter) []approval.Approval {
	t.Helper()
	f.Page = agent.Page{Limit: 100}
	all, _, err := db.Approvals().List(t.Context(), f)
	must(t, err)
	return all
}

// testApprovals checks that the store records approvals when a response ends, accepts one decision
// for each, links them to the next response, and deletes them with their response.
func testApprovals(t *testing.T, open opener) {
	db := open(t)
	ctx, s := t.Context(), db.Approvals()
	r := asking(t, db, "a", time.Hour, "mcpr_1", "mcpr_2")
	asking(t, db, "b", 0, "mcpr_3")
	got := approvalsOf(t, db, approval.Filter{Tenant: "a", Run: r.ID, Status: approval.Pending})
	if len(got) != 2 || got[1].Item != "mcpr_1" || got[1].Arguments != `{"what":"tea"}` || got[1].Server != "shop" || got[1].Deadline.Sub(got[1].CreatedAt) != time.Hour {
		t.Fatalf("got %+v", got)
	}
	first, second := got[1].ID, got[0].ID
	var sealed []byte
	must(t, db.SQL().QueryRowContext(ctx, `SELECT arguments FROM approvals WHERE item = 'mcpr_1'`).Scan(&sealed))
	if bytes.Contains(sealed, []byte("tea")) {
		t.Error("arguments are stored in plain")
	}
	if _, err := s.Get(ctx, "b", first); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("another tenant gets %v", err)
	}
	if _, err := s.Decide(ctx, "b", first, approval.Decision{Approve: true, By: "key_b"}); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("another tenant decides: %v", err)
	}
	all, err := s.Decide(ctx, "a", first, approval.Decision{Approve: true, Reason: "fine", By: "key_9"})
	if must(t, err); len(all) != 2 || all[0].Status != approval.Approved || all[0].Reason != "fine" || all[0].By != "key_9" || all[1].Status != approval.Pending {
		t.Errorf("decided as %+v", all)
	}
	if _, err := s.Decide(ctx, "a", first, approval.Decision{Approve: false}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another decision: %v", err)
	}
	if _, err := s.Decide(ctx, "a", first, approval.Decision{Approve: true, By: "key_8"}); err != nil {
		t.Errorf("the same again: %v", err)
	}
	rows, _, err := db.Audit().List(ctx, audit.Filter{Tenant: "a", Source: run.ConfirmationSource, Limit: 10})
	if must(t, err); len(rows) != 1 || rows[0].Key != "key_9" || rows[0].Turn != r.TurnID() || rows[0].Metadata["decision"] != "approved" {
		t.Errorf("the trail has %+v", rows)
	}

	// A response that contradicts the decision fails and writes nothing.
	before := approvalsOf(t, db, approval.Filter{Tenant: "a"})
	refused, err := goOn(t, db, r, run.Said{Item: "mcpr_2", Approve: true}, run.Said{Item: "mcpr_1", Approve: false})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("a contradiction: %v", err)
	}
	if _, err := db.Runs().Run(ctx, "a", refused.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the refused response: %v", err)
	}
	if after := approvalsOf(t, db, approval.Filter{Tenant: "a"}); after[0] != before[0] || after[1] != before[1] {
		t.Errorf("it has changed %+v", after)
	}
	next, err := goOn(t, db, r, run.Said{Item: "mcpr_2", Approve: false, Reason: "no"}, run.Said{Item: "mcpr_1", Approve: true}, run.Said{Item: "mcpr_unknown", Approve: true})
	must(t, err)
	for id, want := range map[approval.ID]approval.Status{first: approval.Approved, second: approval.Denied} {
		if a, err := s.Get(ctx, "a", id); err != nil || a.Status != want || a.Next != next.ID {
			t.Errorf("%s is %+v, %v", id, a, err)
		}
	}
	if _, err := s.Decide(ctx, "a", first, approval.Decision{Approve: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after the response went on: %v", err)
	}
	must(t, db.Runs().Delete(ctx, "a", r.ID))
	if left := approvalsOf(t, db, approval.Filter{Tenant: "a"}); len(left) != 0 {
		t.Errorf("a deleted response leaves %+v", left)
	}
	testApprovalsExpire(t, db)
	testApprovalsAtOnce(t, db)
	testApprovalsUndone(t, db)
}

// testApprovalsUndone checks that the store lists a decided response until another one continues it.
func testApprovalsUndone(t *testing.T, db *store.DB) {
	s := db.Approvals()
	r, half := asking(t, db, "u", time.Hour, "mcpr_u1", "mcpr_u2"), asking(t, db, "u", time.Hour, "mcpr_u3", "mcpr_u4")
	decide := func(of *run.Run, n int) {
		for _, a := range approvalsOf(t, db, approval.Filter{Tenant: "u", Run: of.ID})[:n] {
			_, err := s.Decide(t.Context(), "u", a.ID, approval.Decision{Approve: true, By: "key_1"})
			must(t, err)
		}
	}
	decide(r, 2)
	decide(half, 1)
	listed := func() bool {
		all, err := s.Undone(t.Context(), 1000)
		must(t, err)
		if slices.Contains(all, approval.Response{Tenant: "u", Run: half.ID}) {
			t.Error("a response with a call that waits is listed")
		}
		return slices.Contains(all, approval.Response{Tenant: "u", Run: r.ID})
	}
	if listed() {
		t.Error("a response is listed at once: the one who decided continues it")
	}
	atolltest.Until(t, time.Minute, "the decided response is listed", listed)
	_, err := goOn(t, db, r, run.Said{Item: "mcpr_u1", Approve: true, Noted: true}, run.Said{Item: "mcpr_u2", Approve: true, Noted: true})
	if must(t, err); listed() {
		t.Error("a response that another one continues is listed")
	}
	testApprovalsUndoneInTurn(t, db)
}

// testApprovalsUndoneInTurn checks that a limit hides no decided response forever.
func testApprovalsUndoneInTurn(t *testing.T, db *store.DB) {
	want := map[run.ID]bool{}
	for _, item := range []string{"mcpr_u5", "mcpr_u6"} {
		r := asking(t, db, "u", time.Hour, item)
		_, err := db.Approvals().Decide(t.Context(), "u", approvalsOf(t, db, approval.Filter{Tenant: "u", Run: r.ID})[0].ID, approval.Decision{By: "key_1"})
		must(t, err)
		want[r.ID] = true
	}
	atolltest.Until(t, time.Minute, "each decided response is listed", func() bool {
		one, err := db.Approvals().Undone(t.Context(), 1)
		if must(t, err); len(one) == 1 {
			delete(want, one[0].Run)
		}
		return len(want) == 0
	})
}

// testApprovalsExpire checks that the deadline denies pending calls and the approved calls of the
// same response. Afterwards a client may deny them, but not approve them.
func testApprovalsExpire(t *testing.T, db *store.DB) {
	ctx, s := t.Context(), db.Approvals()
	r := asking(t, db, "a", -time.Second, "mcpr_5", "mcpr_6")
	asking(t, db, "a", time.Hour, "mcpr_7")
	late := approvalsOf(t, db, approval.Filter{Tenant: "a", Run: r.ID})
	if _, err := s.Decide(ctx, "a", late[0].ID, approval.Decision{Approve: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after the deadline: %v", err)
	}
	if _, err := goOn(t, db, r, run.Said{Item: "mcpr_5", Approve: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a client after the deadline: %v", err)
	}
	n, err := s.Expire(ctx, 10)
	if must(t, err); n != 2 {
		t.Errorf("%d expired", n)
	}
	for _, a := range approvalsOf(t, db, approval.Filter{Tenant: "a", Status: approval.Expired}) {
		if a.Reason != approval.NoAnswer(a.Deadline) || a.By != "" || a.DecidedAt.IsZero() {
			t.Errorf("expired as %+v", a)
		}
	}
	if n, err := s.Expire(ctx, 10); err != nil || n != 0 {
		t.Errorf("again %d, %v", n, err)
	}
	if _, err := goOn(t, db, r, run.Said{Item: "mcpr_5", Approve: false}, run.Said{Item: "mcpr_6", Approve: false}); err != nil {
		t.Errorf("a client that denies it: %v", err)
	}
	rows, _, err := db.Audit().List(ctx, audit.Filter{Tenant: "a", Metadata: map[string]string{"decision": "expired"}, Limit: 10})
	if must(t, err); len(rows) != 2 || rows[0].Key != "" {
		t.Errorf("the trail has %+v", rows)
	}
	// List the approvals page by page.
	var seen []approval.ID
	f := approval.Filter{Tenant: "a", Page: agent.Page{Limit: 2}}
	for range 5 {
		page, next, err := s.List(ctx, f)
		must(t, err)
		for i := range page {
			seen = append(seen, page[i].ID)
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	if len(seen) != 3 {
		t.Errorf("page by page %q", seen)
	}
}

// testApprovalsAtOnce checks that exactly one of several concurrent decisions finds that no call of
// the response is left, so that the response continues.
func testApprovalsAtOnce(t *testing.T, db *store.DB) {
	s := db.Approvals()
	for range 40 {
		r := asking(t, db, "a", time.Hour, string(run.NewID()), string(run.NewID()))
		both := approvalsOf(t, db, approval.Filter{Tenant: "a", Run: r.ID})
		last := make(chan bool, len(both))
		for i := range both {
			go func() {
				all, err := s.Decide(t.Context(), "a", both[i].ID, approval.Decision{Approve: true, By: "key_1"})
				last <- err == nil && !slices.ContainsFunc(all, func(a approval.Approval) bool { return a.Status == approval.Pending })
			}()
		}
		if first, second := <-last, <-last; !first && !second {
			t.Fatal("each decision found the other call undecided")
		}
	}
}
