package imagequery_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/imagequery"
	"github.com/atoll-run/atoll/internal/core/imagequery/imagequerytest"
	"github.com/atoll-run/atoll/internal/core/requirement"
)

// scripted is an executor that records questions and gives one answer to all.
type scripted struct {
	asked []any
	text  string
	err   error
	hang  bool // it answers only when the call ends
}

func (s *scripted) answer(ctx context.Context, asked ...any) (string, error) {
	s.asked = asked
	if s.hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return s.text, s.err
}

func (s *scripted) CheckImage(ctx context.Context, name string) error {
	_, err := s.answer(ctx, name)
	return err
}

func (s *scripted) CheckPackages(ctx context.Context, image string, set *requirement.Set) error {
	_, err := s.answer(ctx, image, *set)
	return err
}

func (s *scripted) Resolve(ctx context.Context, asked string) (string, error) {
	return s.answer(ctx, asked)
}

func (s *scripted) Prepare(ctx context.Context, image string, extras []string) (string, error) {
	return s.answer(ctx, image, extras)
}

func (s *scripted) Lacking(ctx context.Context, image string, extras []string) (string, error) {
	return s.answer(ctx, image, extras)
}

var (
	set    = requirement.Set{Apt: []string{"jq"}, NPM: []string{"@scope/name@1"}}
	extras = []string{requirement.Browser, requirement.Office}
)

// questions asks each question once, with arguments that an executor must receive.
var questions = map[string]struct {
	ask   func(ctx context.Context, images imagequery.Images) (string, error)
	asked []any
}{
	"CheckImage": {func(ctx context.Context, i imagequery.Images) (string, error) { return "", i.CheckImage(ctx, "a") }, []any{"a"}},
	"CheckPackages": {func(ctx context.Context, i imagequery.Images) (string, error) {
		return "", i.CheckPackages(ctx, "b", &set)
	}, []any{"b", set}},
	"Resolve": {func(ctx context.Context, i imagequery.Images) (string, error) { return i.Resolve(ctx, "node:22") }, []any{"node:22"}},
	"Prepare": {func(ctx context.Context, i imagequery.Images) (string, error) { return i.Prepare(ctx, "c", extras) }, []any{"c", extras}},
	"Lacking": {func(ctx context.Context, i imagequery.Images) (string, error) { return i.Lacking(ctx, "d", extras) }, []any{"d", extras}},
}

func client(s *scripted) *imagequery.Client {
	return imagequery.NewClient(imagequerytest.Caller(imagequery.Handlers(s)))
}

// TestEncoding checks that arguments, results and faults reach the other process.
func TestEncoding(t *testing.T) {
	for name, q := range questions {
		s := &scripted{text: "an answer"}
		got, err := q.ask(t.Context(), client(s))
		if err != nil || !reflect.DeepEqual(s.asked, q.asked) || got != s.text && !strings.HasPrefix(name, "Check") {
			t.Errorf("%s: the executor was asked %v, and answered %q, %v", name, s.asked, got, err)
		}
		for _, kind := range []fault.Kind{fault.Invalid, fault.Conflict, fault.Exhausted, fault.Unavailable} {
			s = &scripted{err: &fault.Error{Kind: kind, Msg: "say why", Dimension: "limit", RetryAfter: time.Second}}
			_, err := q.ask(t.Context(), client(s))
			if f, ok := errors.AsType[*fault.Error](err); !ok || !reflect.DeepEqual(f, s.err) {
				t.Errorf("%s: got %v for %+v", name, err, s.err)
			}
		}
	}
}

// TestNoExecutor checks that a silent or missing executor does not look like a missing image.
func TestNoExecutor(t *testing.T) {
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			unavailable := func(err error, says string) {
				t.Helper()
				f, ok := errors.AsType[*fault.Error](err)
				if !ok || f.Kind != fault.Unavailable || !strings.Contains(f.Msg, says) {
					t.Errorf("got %v, want an Unavailable fault with %q", err, says)
				}
			}
			_, err := q.ask(t.Context(), imagequery.NewClient(imagequerytest.Caller{}))
			unavailable(err, "no process answers")
			synctest.Test(t, func(t *testing.T) {
				_, err := q.ask(t.Context(), client(&scripted{hang: true}))
				unavailable(err, "check that an executor runs")
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, err = q.ask(ctx, client(&scripted{hang: true}))
				unavailable(err, "the request ended")
			})
		})
	}
}

// TestHostileExecutor checks that a caller never takes an executor's fault for one about its key, and
// that texts have a limit.
func TestHostileExecutor(t *testing.T) {
	for name, q := range questions {
		for _, err := range []error{fault.New(fault.Unauthorized, "log in"), fault.New(fault.NotFound, "none"), fault.New(99, "unknown"), errors.New("lost")} {
			if _, got := q.ask(t.Context(), client(&scripted{err: err})); got == nil || fault.KindOf(got) != fault.Internal {
				t.Errorf("%s: got %v for %v", name, got, err)
			}
		}
		long := strings.Repeat("x", 1<<20)
		_, err := q.ask(t.Context(), client(&scripted{err: fault.New(fault.Invalid, "%s", long)}))
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Invalid || len(f.Msg) > 4096 {
			t.Errorf("%s: a fault has %d bytes", name, len(err.Error()))
		}
		if got, err := q.ask(t.Context(), client(&scripted{text: long})); err != nil || len(got) > 4096 {
			t.Errorf("%s: an answer has %d bytes, %v", name, len(got), err)
		}
	}
}
