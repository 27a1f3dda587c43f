package execute

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// FuzzExecute checks that no body panics the decoder or is our fault, and that
// what is admitted keeps its promises.
func FuzzExecute(f *testing.F) {
	for _, seed := range []string{
		`{"code":"print(1)"}`, `{"code":"x","language":"bash","timeout":5,"env_vars":{"A":"b"},"metadata":{"k":"v"},"thread_id":null}`,
		`{"code":"\ud83d\ude00","timeout":1e3}`, `{"code":`, `[{}]`, "\xff", `{"a":{"b":[1,2,{"c":null}]}}`, `{"code":"x","env_vars":{"A":1}}`,
	} {
		f.Add([]byte(seed))
	}
	policy := execution.Policy{MaxTimeout: time.Hour}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in ExecuteRequest
		err := wire.Body.Decode(body, &in)
		var req execution.Request
		if err == nil {
			req, err = in.request(policy)
		}
		if err == nil {
			err = policy.Check(req)
		}
		if err != nil {
			if status, answer := httpapi.Render(err); status < 400 || status >= 500 || strings.Contains(answer.Message, "\n") {
				t.Errorf("got %d %+v", status, answer)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("admitted what is not JSON")
		}
	})
}

// TestPartial: a request's partial reaches the execution.
func TestPartial(t *testing.T) {
	for body, want := range map[string]bool{`{"code":"x"}`: false, `{"code":"x","partial":null}`: false, `{"code":"x","partial":true}`: true} {
		var in ExecuteRequest
		if err := wire.Body.Decode([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		if req, err := in.request(execution.Policy{}); err != nil || req.Partial != want {
			t.Errorf("%s: %t, %v", body, req.Partial, err)
		}
	}
}
