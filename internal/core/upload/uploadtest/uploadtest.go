// Package uploadtest is the suite that every upload.Store passes.
package uploadtest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/test/check"
)

// New returns a file that is not stored yet.
func New(tenant, name string, size int64) *upload.File {
	return &upload.File{ID: upload.NewID(), Tenant: tenant, Name: name, MediaType: "text/plain", Size: size}
}

var none upload.Limits

var must = check.Must

// put has a file be there.
func put(t testing.TB, s upload.Store, f *upload.File, life time.Duration) *upload.File {
	t.Helper()
	must(t, s.Begin(t.Context(), f, none))
	must(t, s.Finish(t.Context(), f, none, life))
	return f
}

// Store checks a store; open makes an empty one.
func Store(t *testing.T, open func(t *testing.T) upload.Store) {
	t.Run("life", func(t *testing.T) { life(t, open(t)) })
	t.Run("pages", func(t *testing.T) { pages(t, open(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, open(t)) })
	t.Run("gone", func(t *testing.T) { gone(t, open(t)) })
}

func life(t *testing.T, s upload.Store) {
	ctx, f := t.Context(), New("ten_1", "a.csv", 0)
	unknown := func(of tenant.ID) {
		t.Helper()
		if got, err := s.Get(ctx, of, f.ID); fault.KindOf(err) != fault.NotFound {
			t.Errorf("got %+v, %v", got, err)
		}
		if err := s.Delete(ctx, of, f.ID); fault.KindOf(err) != fault.NotFound {
			t.Errorf("deleted: %v", err)
		}
		all, _, err := s.List(ctx, of, upload.Page{Limit: 10})
		found, failed := s.Find(ctx, of, []upload.ID{f.ID, upload.NewID()})
		if err != nil || failed != nil || len(all)+len(found) > 0 {
			t.Errorf("lists %+v and %+v, %v, %v", all, found, err, failed)
		}
	}
	unknown("ten_1")
	must(t, s.Begin(ctx, f, none))
	unknown("ten_1")
	f.Size = 7
	must(t, s.Finish(ctx, f, none, time.Hour))
	if f.CreatedAt.IsZero() || f.ExpiresAt.Sub(f.CreatedAt) != time.Hour {
		t.Errorf("finished %+v", f)
	}
	unknown("ten_2")
	got, err := s.Get(ctx, "ten_1", f.ID)
	must(t, err)
	found, err := s.Find(ctx, "ten_1", []upload.ID{upload.NewID(), f.ID})
	must(t, err)
	if !reflect.DeepEqual(got, f) || len(found) != 1 || !reflect.DeepEqual(found[0], *f) {
		t.Errorf("got %+v and %+v, want %+v", got, found, f)
	}
	if err := s.Finish(ctx, f, none, 0); fault.KindOf(err) != fault.Conflict {
		t.Errorf("finished twice: %v", err)
	}
	must(t, s.Delete(ctx, "ten_1", f.ID))
	unknown("ten_1")
	must(t, s.Forget(ctx, f.ID))
	must(t, s.Forget(ctx, f.ID))
}

func pages(t *testing.T, s upload.Store) {
	var want, got []upload.ID
	for i := range 5 {
		want = append(want, put(t, s, New("ten_1", fmt.Sprint(i), 1), 0).ID)
		put(t, s, New("ten_2", "x", 1), 0)
	}
	slices.Reverse(want)
	for p := (upload.Page{Limit: 2}); ; {
		page, next, err := s.List(t.Context(), "ten_1", p)
		must(t, err)
		for _, f := range page {
			got = append(got, f.ID)
		}
		if p.Cursor = next; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("lists %v, want %v", got, want)
	}
	_, next, err := s.List(t.Context(), "ten_1", upload.Page{Limit: 2})
	must(t, err)
	if _, _, err := s.List(t.Context(), "ten_2", upload.Page{Limit: 2, Cursor: next}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("another tenant's cursor: %v", err)
	}
}

func limits(t *testing.T, s upload.Store) {
	ctx := t.Context()
	full := func(err error, dimension string) {
		t.Helper()
		if fault.KindOf(err) != fault.Exhausted {
			t.Errorf("%s: %v", dimension, err)
		}
	}
	two, ten := upload.Limits{Files: 2}, upload.Limits{Bytes: 10}
	first := New("ten_1", "a", 6)
	must(t, s.Begin(ctx, first, two))
	full(s.Begin(ctx, New("ten_1", "b", 5), ten), upload.DimensionBytes) // beside what is on its way
	must(t, s.Finish(ctx, first, ten, 0))
	second := New("ten_1", "b", 0)
	must(t, s.Begin(ctx, second, two))
	full(s.Begin(ctx, New("ten_1", "c", 0), two), upload.DimensionFiles)
	second.Size = 5
	full(s.Finish(ctx, second, ten, 0), upload.DimensionBytes)
	must(t, s.Drop(ctx, second.ID))
	must(t, s.Forget(ctx, second.ID))
	must(t, s.Begin(ctx, New("ten_1", "c", 4), two))
	must(t, s.Begin(ctx, New("ten_2", "c", 4), two))
}

func gone(t *testing.T, s upload.Store) {
	ctx := t.Context()
	stays := put(t, s, New("ten_1", "stays", 1), time.Hour)
	deleted := put(t, s, New("ten_1", "deleted", 2), 0)
	must(t, s.Delete(ctx, "ten_1", deleted.ID))
	expired := put(t, s, New("ten_1", "expired", 3), time.Microsecond)
	begun := New("ten_2", "begun", 4)
	must(t, s.Begin(ctx, begun, none))
	time.Sleep(time.Millisecond) // both clocks have gone on
	names := func(stale time.Duration, want ...string) (all []upload.File) {
		t.Helper()
		all, err := s.Gone(ctx, stale, 10)
		must(t, err)
		var got []string
		for _, f := range all {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("gone are %v, want %v", got, want)
		}
		return all
	}
	names(time.Hour, "deleted", "expired")
	for _, f := range names(0, "deleted", "expired", "begun") {
		must(t, s.Forget(ctx, f.ID))
	}
	names(0)
	if err := s.Finish(ctx, begun, none, 0); fault.KindOf(err) != fault.Conflict {
		t.Errorf("finished after it was swept: %v", err)
	}
	if _, err := s.Get(ctx, "ten_1", expired.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("expired: %v", err)
	}
	must(t, s.Forget(ctx, stays.ID))
	if _, err := s.Get(ctx, "ten_1", stays.ID); err != nil {
		t.Errorf("forgotten though it is there: %v", err)
	}
}
