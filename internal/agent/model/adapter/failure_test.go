package adapter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// wantFailure checks the error of an answer.
func wantFailure(t *testing.T, err error, f model.Failure, says string) *model.Error {
	t.Helper()
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("got %v, want a failure %s", err, f)
	}
	if e.Failure != f || !strings.Contains(e.Msg, says) {
		t.Errorf("got %s %q, want %s with %q", e.Failure, e.Msg, f, says)
	}
	return e
}

func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, p model.Provider) {
		for _, c := range []struct {
			refusal scriptedmodel.Refusal
			header  http.Header
			want    model.Failure
			says    string
			after   time.Duration
		}{
			{scriptedmodel.Refusal{Status: 400, Type: "invalid_request_error", Message: "messages: unknown role"}, nil, model.Rejected, "the provider answered 400: messages: unknown role", 0},
			{scriptedmodel.Refusal{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "This model's maximum context length is 8192 tokens"}, nil, model.ContextTooLong, "8192", 0},
			{scriptedmodel.Refusal{Status: 400, Type: "invalid_request_error", Message: "prompt is too long: 210000 tokens > 200000 maximum"}, nil, model.ContextTooLong, "200000", 0},
			{scriptedmodel.Refusal{Status: 413, Type: "request_too_large", Message: "too large"}, nil, model.ContextTooLong, "too large", 0},
			{scriptedmodel.Refusal{Status: 401, Type: "authentication_error", Code: "invalid_api_key", Message: "Incorrect API key provided: sk-prov*****kkkk"}, nil, model.Unauthorized, "rejects the key it was given", 0},
			{scriptedmodel.Refusal{Status: 403, Type: "permission_error", Message: "not allowed here"}, nil, model.Unauthorized, "not allowed here", 0},
			{scriptedmodel.Refusal{Status: 404, Type: "not_found_error", Message: "model: nothing-1"}, nil, model.Rejected, "nothing-1", 0},
			{scriptedmodel.Refusal{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow down"}, http.Header{"Retry-After": {"7"}}, model.RateLimited, "slow down", 7 * time.Second},
			{scriptedmodel.Refusal{Status: 429, Type: "requests", Message: "slow down"}, http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}, model.RateLimited, "slow down", 1500 * time.Millisecond},
			{scriptedmodel.Refusal{Status: 429, Type: "insufficient_quota", Code: "insufficient_quota", Message: "pay first"}, nil, model.Rejected, "pay first", 0},
			{scriptedmodel.Refusal{Status: 500, Type: "api_error", Message: "oops"}, nil, model.Transient, "oops", 0},
			{scriptedmodel.Refusal{Status: 502, Message: ""}, nil, model.Transient, "Bad Gateway", 0},
			{scriptedmodel.Refusal{Status: 503, Message: "busy"}, http.Header{"Retry-After": {"1000000000000"}}, model.Transient, "busy", 0},
			{scriptedmodel.Refusal{Status: 529, Type: "overloaded_error", Message: "Overloaded"}, http.Header{"Retry-After": {"100000000"}}, model.Transient, "Overloaded", 24 * time.Hour},
			{scriptedmodel.Refusal{Status: 500, Message: "no use"}, http.Header{"X-Should-Retry": {"false"}}, model.Rejected, "no use", 0},
		} {
			s := scriptedmodel.New(t, scriptedmodel.Turn{Refuse: &c.refusal, Header: c.header.Clone()})
			rec := s.Record(p)
			_, err := model.Collect(open(t, rec, reach(t), model.DefaultBounds).Generate(t.Context(), hello))
			e := wantFailure(t, err, c.want, c.says)
			if e.Status != c.refusal.Status || e.RetryAfter != c.after {
				t.Errorf("%s: status %d, retry after %s", e.Msg, e.Status, e.RetryAfter)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%s: it was asked %d times", e.Msg, n)
			}
		}
	})
}

func TestBrokenStreams(t *testing.T) {
	whole := scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{"a", "b", "c", "d", "e"}}}, Usage: &model.Usage{Input: 1, Output: 1}}
	each(t, func(t *testing.T, p model.Provider) {
		for _, c := range []struct {
			name   string
			ending scriptedmodel.Ending
			fault  scriptedmodel.Refusal
			want   model.Failure
			says   string
		}{
			{"cut", scriptedmodel.EndCut, scriptedmodel.Refusal{}, model.Transient, "the connection to the provider was cut"},
			{"early", scriptedmodel.EndEarly, scriptedmodel.Refusal{}, model.Transient, "cut short"},
			{"silent", scriptedmodel.EndSilent, scriptedmodel.Refusal{}, model.Transient, ""},
			{"garbage", scriptedmodel.EndGarbage, scriptedmodel.Refusal{}, model.Transient, "cannot be read"},
			{"overloaded", scriptedmodel.EndError, scriptedmodel.Refusal{Type: "overloaded_error", Code: "server_error", Message: "Overloaded"}, model.Transient, "Overloaded"},
			{"rate limit", scriptedmodel.EndError, scriptedmodel.Refusal{Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow"}, model.RateLimited, "slow"},
			{"wrong", scriptedmodel.EndError, scriptedmodel.Refusal{Type: "invalid_request_error", Code: "invalid_prompt", Message: "bad"}, model.Rejected, "bad"},
		} {
			t.Run(c.name, func(t *testing.T) {
				turn := whole
				turn.After, turn.Ending, turn.Fault = 6, c.ending, c.fault
				bounds, says := model.DefaultBounds, c.says
				for idle := 200 * time.Millisecond; ; idle *= 2 { // longer, where its first word is late
					silent := c.ending == scriptedmodel.EndSilent
					if silent {
						bounds.Idle, says = idle, fmt.Sprintf("sent nothing for %s", idle)
					}
					s := scriptedmodel.New(t, turn)
					got, err := model.Collect(open(t, s.Record(p), reach(t), bounds).Generate(t.Context(), hello))
					wantFailure(t, err, c.want, says)
					said := got.Text()
					if said == "" && silent && idle < 10*time.Second {
						continue
					}
					if said == "" || !strings.HasPrefix("abcde", said) {
						t.Errorf("before that it said %q", said)
					}
					break
				}
			})
		}
	})
}

// TestNoStream is a server that answers something else.
func TestNoStream(t *testing.T) {
	each(t, func(t *testing.T, p model.Provider) {
		for media, body := range map[string]string{"text/html; charset=utf-8": "<html>log in</html>", "application/json": `{"choices":[{"message":{"content":"hi"}}]}`} {
			s := scriptedmodel.New(t, scriptedmodel.Turn{Body: []byte(body), Header: http.Header{"Content-Type": {media}}})
			_, err := model.Collect(open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), hello))
			wantFailure(t, err, model.Broken, "in place of a stream: is the base URL that of its API?")
		}
		s := scriptedmodel.New(t, scriptedmodel.Turn{Body: []byte("hello"), Header: http.Header{"Content-Type": {"text/event-stream"}}})
		_, err := model.Collect(open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), hello))
		wantFailure(t, err, model.Transient, "cut short")
	})
}

// TestBounds is a provider that sends more than an answer can have.
func TestBounds(t *testing.T) {
	streamed := http.Header{"Content-Type": {"text/event-stream"}}
	each(t, func(t *testing.T, p model.Provider) {
		small := model.DefaultBounds
		small.Bytes, small.Calls = 100, 2
		calls := []scriptedmodel.Block{}
		for _, id := range []string{"a", "b", "c"} {
			calls = append(calls, scriptedmodel.Block{Call: &scriptedmodel.Call{ID: id, Name: "run"}})
		}
		for says, turn := range map[string]scriptedmodel.Turn{
			"more than 100 bytes":     {Blocks: []scriptedmodel.Block{{Text: []string{strings.Repeat("x", 60), strings.Repeat("x", 60)}}}},
			"more than 2 tool calls":  {Blocks: calls},
			"gives two tool calls":    {Blocks: []scriptedmodel.Block{calls[0], {Text: []string{"x"}}, calls[0]}},
			"without a usable id":     {Blocks: []scriptedmodel.Block{{Call: &scriptedmodel.Call{ID: "a", Name: strings.Repeat("n", 600)}}}},
			"tokens that cannot be":   {Blocks: []scriptedmodel.Block{{Text: []string{"x"}}}, Usage: &model.Usage{Input: 1, Output: -5}},
			"event with a list or":    {Header: streamed.Clone(), Body: []byte("data: {\"choices\":[" + strings.Repeat("{},", 1<<20) + "{}]}\n\n")},
			"with a list or object w": {Header: streamed.Clone(), Body: []byte(": \"\ndata: {\"choices\":[" + strings.Repeat("{},", 1<<20) + "{}]}\n\n")},
			"an event with a list or": {Header: streamed.Clone(), Body: []byte("data: {\"choices\":[" + strings.Repeat(strings.Repeat("{},", 9_000)+"\n\r\r\ndata: ", 12) + "{}]}\n\n")},
			"event of more than 1677": {Header: streamed.Clone(), Body: append([]byte("data: "), bytes.Repeat([]byte("x"), 17<<20)...)},
		} {
			if says == "gives two tool calls" && p == "openai-chat" {
				continue // where one id is one call
			}
			s := scriptedmodel.New(t, turn)
			_, err := model.Collect(open(t, s.Record(p), reach(t), small).Generate(t.Context(), hello))
			wantFailure(t, err, model.Broken, says)
		}
		// The body of a refusal is read up to a bound.
		s := scriptedmodel.New(t, scriptedmodel.Turn{Refuse: &scriptedmodel.Refusal{Status: 400, Message: strings.Repeat("long ", 100_000)}})
		_, err := model.Collect(open(t, s.Record(p), reach(t), small).Generate(t.Context(), hello))
		if e := wantFailure(t, err, model.Rejected, "400"); len(e.Msg) > 2000 {
			t.Errorf("the message has %d bytes", len(e.Msg))
		}
	})
}

// TestRedirects are not followed, wherever they lead: the key would go along.
func TestRedirects(t *testing.T) {
	var reached atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(private.Close)
	each(t, func(t *testing.T, p model.Provider) {
		for _, status := range []int{301, 302, 307, 308} {
			s := scriptedmodel.New(t, scriptedmodel.Turn{Refuse: &scriptedmodel.Refusal{Status: status}, Header: http.Header{"Location": {private.URL + "/latest/meta-data"}}})
			_, err := model.Collect(open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), hello))
			wantFailure(t, err, model.Rejected, http.StatusText(status))
		}
	})
	if reached.Load() != 0 {
		t.Error("the private address was reached")
	}
}

func TestPrivateAddresses(t *testing.T) {
	rt := transport.New(outbound.List{})
	each(t, func(t *testing.T, p model.Provider) {
		s := scriptedmodel.New(t)
		_, err := model.Collect(open(t, s.Record(p), rt, model.DefaultBounds).Generate(t.Context(), hello))
		wantFailure(t, err, model.Rejected, "the provider's address is refused: private, local and reserved addresses")
		s.Close()
		_, err = model.Collect(open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), hello))
		wantFailure(t, err, model.Transient, "the provider cannot be reached: dial: connect: connection refused")
		rec := s.Record(p)
		rec.BaseURL = "http://no-such-host.invalid/v1"
		_, err = model.Collect(open(t, rec, rt, model.DefaultBounds).Generate(t.Context(), hello))
		wantFailure(t, err, model.Transient, "the provider")
	})
}

// TestTheKeyIsNotShown has providers repeat the key wherever they can.
func TestTheKeyIsNotShown(t *testing.T) {
	each(t, func(t *testing.T, p model.Provider) {
		s := scriptedmodel.New(t)
		rec := s.Record(p)
		fault := scriptedmodel.Refusal{Status: 400, Type: "the type " + rec.Key, Code: rec.Key, Message: "you sent Authorization: Bearer " + rec.Key + "\nagain"}
		turns := []scriptedmodel.Turn{
			{Refuse: &fault},
			{Refuse: &scriptedmodel.Refusal{Status: 401, Message: "wrong key " + rec.Key[:20]}},
			{Refuse: &scriptedmodel.Refusal{Status: 500, Message: rec.Key}},
			{Blocks: []scriptedmodel.Block{{Text: []string{"a", "b", "c"}}}, After: 3, Ending: scriptedmodel.EndError, Fault: fault},
			{Refuse: &scriptedmodel.Refusal{Status: 302}, Header: http.Header{"Location": {"http://example.com/?key=" + rec.Key}}},
			{Body: []byte(rec.Key), Header: http.Header{"Content-Type": {"text/html"}}},
		}
		s.Add(turns...)
		m := open(t, rec, reach(t), model.DefaultBounds)
		for range turns {
			_, err := model.Collect(m.Generate(t.Context(), hello))
			if err == nil {
				t.Fatal("no error")
			}
			for _, text := range []string{err.Error(), strings.ToLower(err.Error())} {
				if strings.Contains(text, rec.Key) || strings.Contains(text, "sk-provider") || strings.Contains(text, "\n") {
					t.Errorf("the message is %q", text)
				}
			}
		}
	})
}

// TestCancelled ends the provider's request when the caller's context ends.
func TestCancelled(t *testing.T) {
	cause := errors.New("the run was cancelled")
	each(t, func(t *testing.T, p model.Provider) {
		for name, turn := range map[string]scriptedmodel.Turn{
			"before the answer": {Wait: time.Minute},
			"within it":         {Blocks: []scriptedmodel.Block{{Text: []string{"a", "b", "c", "d"}}}, After: 5, Ending: scriptedmodel.EndSilent},
		} {
			t.Run(name, func(t *testing.T) {
				s := scriptedmodel.New(t, turn)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if turn.Wait > 0 {
					go func() {
						<-s.Asked()
						cancel(cause)
					}()
				}
				var err error
				for d, failed := range open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(ctx, hello) {
					if err = failed; d.Kind == model.Said {
						cancel(cause)
					}
				}
				if !errors.Is(err, cause) {
					t.Errorf("got %v", err)
				}
				closed := make(chan struct{})
				go func() { s.Close(); close(closed) }() // waits for its requests
				select {
				case <-closed:
				case <-time.After(10 * time.Second):
					t.Error("the provider's request continues")
				}
			})
		}
	})
}

// broken is a stream whose connection is reset after its bytes.
type broken string

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := stream(b).RoundTrip(r)
	if err == nil {
		res.Body = io.NopCloser(io.MultiReader(res.Body, resetting{}))
	}
	return res, err
}

type resetting struct{}

func (resetting) Read([]byte) (int, error) { return 0, syscall.ECONNRESET }

// TestCutAnywhere cuts the connection after each byte of an answer: it is whole, or there
// is an error that says that it may be asked for again.
func TestCutAnywhere(t *testing.T) {
	turn := scriptedmodel.Turn{Blocks: []scriptedmodel.Block{
		{Text: []string{"one ", "tẅo "}}, {Call: &scriptedmodel.Call{ID: "c1", Name: "run", Arguments: []string{`{"a"`, `: 1}`}}},
	}, Usage: &model.Usage{Input: 10, Output: 5}}
	each(t, func(t *testing.T, p model.Provider) {
		whole := turn.Stream(p)
		rec := model.Record{Provider: p, BaseURL: "https://provider.example/v1", Upstream: "m", Key: "sk-provider-key-of-length", Spec: model.Spec{Capabilities: model.Capabilities}}
		for n := range len(whole) {
			got, err := model.Collect(open(t, rec, broken(whole[:n]), model.DefaultBounds).Generate(t.Context(), hello))
			if err != nil {
				if e, ok := errors.AsType[*model.Error](err); !ok || !e.Retryable() {
					t.Errorf("cut after %d bytes: %v", n, err)
				}
				continue
			}
			if got.Text() != "one tẅo " || len(got.Calls()) != 1 || got.Calls()[0].Arguments != `{"a": 1}` || n < len(whole)*3/4 {
				t.Errorf("cut after %d of %d bytes it is taken for whole: %+v", n, len(whole), got)
			}
		}
	})
}
