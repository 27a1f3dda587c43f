package sdk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	atoll "github.com/atoll-run/atoll/sdk/go"
)

// place is where scenarios run: what the environment tells other runners.
type place struct {
	url, trouble string
	keys         map[string]string // by what "as" says
	model        string
	folder       string // of the scenarios
}

// client is a client as a step wants it.
func (p *place) client(s *step) *atoll.Client {
	base, key := p.url, p.keys[s.As]
	if s.As == "" {
		key = p.keys["default"]
	}
	if s.Through != "" {
		base = p.trouble + "/" + s.Through
	}
	return atoll.New(base, key)
}

// outcome is how a call ended.
type outcome struct {
	result any   // in wire form
	events []any // of a stream, likewise
	err    error
	late   time.Duration // how long a call went on after it was cancelled
}

// running is a scenario that runs.
type running struct {
	place      *place
	vars       map[string]any
	background map[string]chan outcome
}

// run runs a scenario, and says why it is not as wanted, "" if it is.
func (p *place) run(ctx context.Context, s scenario) string {
	r := &running{place: p, background: map[string]chan outcome{}, vars: map[string]any{
		"unique": strings.ToLower(rand.Text()[:8]), "ATOLL_MODEL": p.model,
	}}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for _, over := range r.background {
			<-over
		}
	}()
	for i, raw := range s.Steps {
		st, err := filled(raw, r.vars)
		if err != nil {
			return fmt.Sprintf("step %d: %v", i, err)
		}
		if why := r.step(ctx, st); why != "" {
			return fmt.Sprintf("step %d (%s%s): %s", i, st.Call, st.Join, why)
		}
	}
	return ""
}

// untilTime is how long a step is repeated.
const untilTime = 30 * time.Second

func (r *running) step(ctx context.Context, s *step) string {
	switch {
	case s.Background != "":
		over := make(chan outcome, 1)
		r.background[s.Background] = over
		go func() { over <- r.invoke(ctx, s) }()
		return ""
	case s.Join != "":
		over, ok := r.background[s.Join]
		if !ok {
			return "nothing runs in the background by this name"
		}
		delete(r.background, s.Join)
		return r.judge(s, <-over)
	case !s.Until:
		return r.judge(s, r.invoke(ctx, s))
	}
	give := time.Now().Add(untilTime)
	for {
		why := r.judge(s, r.invoke(ctx, s))
		if why == "" || time.Now().After(give) {
			return why
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return why
		}
	}
}

// cancelTime is how soon a call must end that is cancelled.
const cancelTime = 6 * time.Second

// invoke makes the call of a step.
func (r *running) invoke(ctx context.Context, s *step) (out outcome) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quits := make(chan time.Time, 1)
	quit := func() {
		select {
		case quits <- time.Now():
		default: // it has been cancelled already
		}
		cancel()
	}
	if s.CancelAfterMS > 0 {
		defer time.AfterFunc(time.Duration(s.CancelAfterMS)*time.Millisecond, quit).Stop()
	}
	if s.TimeoutMS > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(s.TimeoutMS)*time.Millisecond)
		defer stop()
	}
	defer func() {
		if bad, ok := recover().(badArgument); ok {
			out.err = bad
		}
		select {
		case at := <-quits:
			out.late = time.Since(at)
		default:
		}
	}()
	a := &args{left: maps.Clone(s.With)}
	c := r.place.client(s).With(a.options()...)
	if f, ok := streams[s.Call]; ok {
		for ev, err := range f(ctx, c, a) {
			if err != nil {
				out.err = err
				return out
			}
			wire, err := wireForm(ev)
			if err != nil {
				out.err = err
				return out
			}
			if out.events = append(out.events, wire); len(out.events) == s.CancelAfterEvents {
				quit()
			}
		}
		out.err = a.unused()
		return out
	}
	f, ok := calls[s.Call]
	if !ok {
		out.err = fmt.Errorf("the runner has no call %s", s.Call)
		return out
	}
	result, err := f(ctx, c, a)
	if err == nil {
		delete(a.left, "limit") // lists that take no query have pages of the library's size
		err = a.unused()
	}
	if err == nil {
		result, err = wireForm(result)
	}
	out.result, out.err = result, err
	return out
}

// wireForm is a value as its JSON has it.
func wireForm(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(raw, &out)
}

// judge compares how a call ended with what was wanted, and keeps what the step saves.
func (r *running) judge(s *step, out outcome) string {
	if s.cancels() {
		if !errors.Is(out.err, context.Canceled) || !errors.Is(out.err, atoll.ErrCanceled) {
			return fmt.Sprintf("it was cancelled, and ended with %v, %s", out.err, short(out.result))
		}
		if out.late > cancelTime {
			return fmt.Sprintf("it was cancelled, and went on for %s", out.late)
		}
		out.err = nil
	}
	switch {
	case s.Error != nil:
		if why := matchError(s.Error, out); why != "" {
			return why
		}
	case out.err != nil:
		return out.err.Error()
	case s.Stream != nil:
		if why := matchStream(s.Stream, out.events, s.Whole); why != "" {
			return why
		}
	case s.expects:
		if why := match(s.Expect, out.result); why != "" {
			return why
		}
	}
	from := out.result
	if out.events != nil {
		from = map[string]any{"events": out.events}
	}
	for name, path := range s.Save {
		value, err := at(from, path)
		if err != nil {
			return err.Error()
		}
		r.vars[name] = value
	}
	return ""
}

// matchError says how a call's error is not as wanted.
func matchError(want map[string]any, out outcome) string {
	if out.err == nil {
		return fmt.Sprintf("want an error, got %s%s", short(out.result), short(out.events))
	}
	got := map[string]any{"message": out.err.Error()}
	var refusal *atoll.Error
	var code atoll.Code
	var lost *atoll.TransportError
	switch {
	case errors.As(out.err, &refusal):
		result, err := wireForm(refusal.Result)
		if err != nil {
			return err.Error()
		}
		if !errors.Is(out.err, refusal.Code) || refusal.TraceID == "" || refusal.Advice() == "" {
			return fmt.Sprintf("the error lacks something: %+v", refusal)
		}
		got = map[string]any{"status": float64(refusal.Status), "code": string(refusal.Code), "message": refusal.Message, "result": result}
	case errors.As(out.err, &lost):
		got["code"] = string(lost.Code)
	case errors.As(out.err, &code):
		got["code"] = string(code)
	}
	return match(want, got)
}

// stream is a stream of a library's as the runner reads it.
type stream = iter.Seq2[any, error]

func untyped[T any](events iter.Seq2[T, error]) stream {
	return func(yield func(any, error) bool) {
		for ev, err := range events {
			if !yield(ev, err) {
				return
			}
		}
	}
}
