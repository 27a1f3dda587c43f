package store_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/idempotency"
)

// testIdempotency: a key stands for one request, whoever asks at the same time.
func testIdempotency(t *testing.T, open opener) {
	ctx := t.Context()
	db := open(t)
	s := db.Idempotency()
	r := idempotency.Request{Tenant: "ten_1", Caller: "key_1", Key: "k'; --", Body: [32]byte{1}}
	var begun atomic.Int32
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			earlier, err := s.Begin(ctx, r)
			must(t, err)
			if earlier == nil {
				begun.Add(1)
			} else if earlier.State != idempotency.Begun || earlier.Body != r.Body {
				t.Errorf("%+v", earlier)
			}
		})
	}
	all.Wait()
	if begun.Load() != 1 {
		t.Errorf("it was begun %d times", begun.Load())
	}
	want := func(of idempotency.Request, state idempotency.State, a idempotency.Answer) {
		t.Helper()
		got, err := s.Begin(ctx, of)
		must(t, err)
		if got == nil || got.State != state || !reflect.DeepEqual(got.Answer, a) {
			t.Errorf("got %+v, want %s %+v", got, state, a)
		}
	}
	age := func(by string) {
		t.Helper()
		_, err := db.SQL().ExecContext(ctx, `UPDATE idempotent_requests SET created_at = created_at - `+by+`, lease_until = lease_until - `+by)
		must(t, err)
	}
	other := idempotency.Request{Tenant: "ten_2", Caller: "key_1", Key: r.Key}
	for _, of := range []idempotency.Request{other, {Tenant: r.Tenant, Caller: "tok_1", Key: r.Key, Body: r.Body}} {
		if got, err := s.Get(ctx, of); got != nil || err != nil {
			t.Errorf("one that was not made is there: %+v, %v", got, err)
		}
		if got, err := s.Begin(ctx, of); got != nil || err != nil {
			t.Errorf("another caller's key is taken: %+v, %v", got, err)
		}
	}
	answer := idempotency.Answer{Status: 201, Header: map[string]string{"Location": "/v1/x"}, Body: []byte("{}\x00\xff"), Refusal: &idempotency.Refusal{Code: "conflict", Message: "/v1/x"}}
	must(t, s.Renew(ctx, r))
	must(t, s.End(ctx, r, idempotency.Done, answer))
	want(r, idempotency.Done, answer)
	must(t, s.Release(ctx, r)) // too late
	want(r, idempotency.Done, answer)
	must(t, s.End(ctx, r, idempotency.Unknown, idempotency.Answer{})) // too late
	want(r, idempotency.Done, answer)

	if got, err := s.Get(ctx, r); err != nil || got.State != idempotency.Done || got.Body != r.Body || !reflect.DeepEqual(got.Answer, answer) {
		t.Errorf("%+v, %v", got, err)
	}
	changed := r
	changed.Body[5]++
	if got, err := s.Get(ctx, changed); err != nil || got.Body == changed.Body {
		t.Errorf("another body's record is %+v, %v", got, err)
	}
	var answers int
	must(t, db.SQL().QueryRowContext(ctx, `SELECT count(*) FROM idempotent_requests WHERE answer LIKE '%/v1/x%'`).Scan(&answers))
	if answers != 0 {
		t.Error("an answer is in the clear")
	}

	// With what it is about, an answer goes, and its key is new; those of other tenants stay.
	about := idempotency.Request{Tenant: r.Tenant, Caller: r.Caller, Key: "about", Body: [32]byte{2}}
	theirs := about
	theirs.Tenant = "ten_2"
	named := idempotency.Answer{Status: 201, Header: map[string]string{}, Objects: []string{"agt_1", "slug"}}
	for _, of := range []idempotency.Request{about, theirs} {
		if got, err := s.Begin(ctx, of); got != nil || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		must(t, s.Forget(ctx, of.Tenant, []string{"agt_1"})) // it is being worked on
		must(t, s.End(ctx, of, idempotency.Done, named))
	}
	must(t, s.Forget(ctx, r.Tenant, []string{"agt_2", "agt_1"}))
	if got, err := s.Get(ctx, about); got != nil || err != nil {
		t.Errorf("the answer about what was deleted is kept: %+v, %v", got, err)
	}
	if got, err := s.Get(ctx, theirs); got == nil || got.State != idempotency.Done || err != nil {
		t.Errorf("another tenant's answer went: %+v, %v", got, err)
	}
	must(t, s.Forget(ctx, "ten_2", []string{"slug"}))
	want(r, idempotency.Done, answer)

	age("61000000") // the server that has the other one is gone
	want(other, idempotency.Unknown, idempotency.Answer{})
	must(t, s.Renew(ctx, other))
	want(other, idempotency.Begun, idempotency.Answer{})
	must(t, s.Release(ctx, other))
	if got, err := s.Begin(ctx, other); got != nil || err != nil {
		t.Errorf("a released key is taken: %+v, %v", got, err)
	}
	must(t, s.End(ctx, other, idempotency.TooLong, idempotency.Answer{}))
	want(other, idempotency.TooLong, idempotency.Answer{})

	age("86400000000") // a day later the key is new
	if got, err := s.Begin(ctx, r); got != nil || err != nil {
		t.Errorf("a key of yesterday is taken: %+v, %v", got, err)
	}
	age("7200000000")
	if n, err := s.Purge(ctx, 10); n != 2 || err != nil {
		t.Errorf("%d keys of yesterday went, %v", n, err)
	}
}
