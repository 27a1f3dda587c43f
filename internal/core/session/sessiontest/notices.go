package sessiontest

import (
	"reflect"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Notices checks what a store tells webhooks of sessions; told returns it.
func Notices(t *testing.T, s session.Store, runs run.Store, told func() []session.Notice) {
	ctx, k := t.Context(), talk{t, s, runs, made("ten_1")}
	k.v.Webhook = session.Webhook{URL: "https://hooks.example", Secret: "a secret"}
	quiet := talk{t, s, runs, made("ten_1")}
	must(t, s.Create(ctx, k.v, 0))
	must(t, s.Create(ctx, quiet.v, 0))
	got, err := s.Get(ctx, "ten_1", k.v.ID)
	must(t, err)
	if got.Webhook != k.v.Webhook {
		t.Errorf("%+v", got.Webhook)
	}
	turn := func(k talk, end run.End) {
		t.Helper()
		n, err := k.begin("ten_1", k.now(), said("Hi"))
		must(t, err)
		n.answered(call("c1", "write"))
		n.add(run.Entry{Ended: &end})
	}
	turn(k, run.End{Status: run.RequiresAction})
	calls, err := s.Calls(ctx, "ten_1", k.v.ID)
	must(t, err)
	must(t, s.Answer(ctx, k.now(), session.Expire(calls, time.Now()), true))
	turn(k, run.End{Status: run.Failed, Reason: run.ModelError, Message: "away"})
	turn(k, run.End{Status: run.Cancelled})
	turn(quiet, run.End{Status: run.Cancelled})
	for range 2 {
		_, err = s.Archive(ctx, "ten_1", k.v.ID)
		must(t, err)
	}
	_, err = s.Archive(ctx, "ten_1", quiet.v.ID)
	must(t, err)
	must(t, s.Delete(ctx, "ten_1", k.v.ID))
	other := made("ten_1")
	other.Webhook = k.v.Webhook
	must(t, s.Create(ctx, other, 0))
	must(t, s.Delete(ctx, "ten_1", other.ID))

	type line struct {
		kind  session.NoticeKind
		end   run.Status
		waits int
	}
	var all []line
	ids := map[string]bool{}
	for _, n := range told() {
		all = append(all, line{n.Kind, n.End, len(n.Waits)})
		ids[n.ID()] = true
		if n.Webhook != k.v.Webhook || n.Tenant != "ten_1" || n.At.IsZero() || (n.Failure != nil) != (n.Kind == session.TellsError) {
			t.Errorf("%+v", n)
		}
	}
	want := []line{
		{session.TellsAction, run.RequiresAction, 1}, {session.TellsIdle, run.Expired, 0}, {session.TellsError, run.Failed, 0}, {session.TellsIdle, run.Cancelled, 0},
		{session.TellsEnd, "", 0}, {session.TellsEnd, "", 0},
	}
	if !reflect.DeepEqual(all, want) || len(ids) != len(want) {
		t.Errorf("told %+v by %d ids, want %+v", all, len(ids), want)
	}
}
