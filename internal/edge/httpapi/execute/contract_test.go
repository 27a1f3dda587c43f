package execute_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// contractRow is a row of the contract's tables, tried as a request on a real
// connection.
type contractRow struct {
	name    string
	who     string // the tenant whose key asks; "" for no key
	method  string // POST if empty
	path    string // /v1/sandbox/execute if empty
	body    string
	headers []string
	status  int
	code    string // of the refusal; "" when it is none
	says    string // part of its message, or of the answer
}

// contractRows are every row of the error table, and both sides of every limit.
func contractRows() []contractRow {
	field := func(name, value string) string { return `{"code":"x","` + name + `":` + value + `}` }
	object := func(n int, name func(int) string, value string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%q:%q", name(i), value)
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	v := func(i int) string { return fmt.Sprintf("V%d", i) }
	one := func(name, value string) string { return object(1, func(int) string { return name }, value) }
	// 15 values of the largest size, and one of what 64 KB leave.
	full := func(more int) string {
		used := len("V0")*10 + len("V10")*5 + 15*execution.MaxEnvValue + len("REST")
		all := object(15, v, strings.Repeat("v", execution.MaxEnvValue))
		return fmt.Sprintf(`%s,"REST":%q}`, strings.TrimSuffix(all, "}"), strings.Repeat("v", execution.MaxEnvBytes-used+more))
	}
	const (
		bad, limited = "validation_error", "rate_limited"
		unknown      = "/v1/executions/trc_00000000000000000000000000000000"
	)
	async, stream := []string{"Prefer", "respond-async"}, []string{"Accept", httpapi.NDJSON}
	return []contractRow{
		// The error table.
		{name: "400 invalid code length", who: "pro", body: `{"code":""}`, status: 400, code: bad, says: "code must be between 1 byte and 1 MB"},
		{name: "400 unrecognized language", who: "pro", body: field("language", `"ruby"`), status: 400, code: bad, says: "language must be one of"},
		{name: "400 thread_id", who: "pro", body: field("thread_id", `"-x"`), status: 400, code: bad, says: "thread_id"},
		{name: "400 sub_paths", who: "pro", body: field("sub_paths", `["/data/a/b"]`), status: 400, code: bad, says: "sub_paths"},
		{name: "400 metadata", who: "pro", body: field("metadata", `{"":""}`), status: 400, code: bad, says: "metadata key"},
		{name: "401 missing key", body: `{"code":"x"}`, status: 401, code: "unauthorized", says: "missing API key"},
		{name: "401 invalid key", who: "unknown", body: `{"code":"x"}`, status: 401, code: "unauthorized", says: "invalid API key"},
		{name: "401 revoked key", who: "revoked", body: `{"code":"x"}`, status: 401, code: "unauthorized", says: "invalid API key"},
		{name: "401 expired key", who: "expired", body: `{"code":"x"}`, status: 401, code: "unauthorized", says: "invalid API key"},
		{name: "403 scope", who: "reads", body: `{"code":"x"}`, status: 403, code: "forbidden", says: `lacks the scope "execute"`},
		{name: "404 unknown execution", who: "pro", method: "GET", path: unknown, status: 404, code: "not_found", says: "execution \"" + unknown[strings.LastIndex(unknown, "/")+1:] + "\" not found"},
		{name: "404 unknown path", who: "pro", path: "/v1/sandbox", status: 404, code: "not_found"},
		{name: "405", who: "pro", method: "GET", status: 405, code: "method_not_allowed", says: "POST"},
		{name: "409 another body for an Idempotency-Key", who: "pro", body: `{"code":"err"}`, headers: []string{"Idempotency-Key", "used"}, status: 409, code: "conflict", says: "different request"},
		{name: "413", who: "pro", body: `{"code":"` + strings.Repeat("#", httpapi.MaxBody) + `"}`, status: 413, code: "payload_too_large"},
		{name: "415", who: "pro", body: `{"code":"x"}`, headers: []string{"Content-Type", "text/plain"}, status: 415, code: "unsupported_media_type"},
		{name: "429 concurrency", who: "busy", body: `{"code":"x"}`, status: 429, code: limited, says: "concurrent execution limit reached (5/5). Your plan is free; upgrade to pro for 100 concurrent executions"},
		{name: "429 timeout", who: "free", body: field("timeout", "61"), status: 429, code: limited, says: "timeout exceeds your plan's maximum of 60 seconds; ask for 60 or less. Your plan is free; upgrade to pro"},
		{name: "429 streaming", who: "free", body: `{"code":"x"}`, headers: stream, status: 429, code: limited, says: "Streaming execution requires a plan with streaming, such as pro or enterprise. Your plan is free; upgrade to pro."},
		{name: "429 async", who: "free", body: `{"code":"x"}`, headers: async, status: 429, code: limited, says: "Your plan is free; upgrade to pro."},
		{name: "429 cpu", who: "wide", body: `{"code":"x"}`, status: 429, code: limited, says: "cpu of 2 exceeds the free plan's maximum of 1; upgrade to pro"},
		{name: "429 memory", who: "large", body: `{"code":"x"}`, status: 429, code: limited, says: "memory of 2 GiB exceeds the free plan's maximum of 1 GiB; upgrade to pro"},
		{name: "429 budget", who: "spent", body: `{"code":"x"}`, status: 429, code: limited, says: "monthly budget used up"},
		{name: "500", who: "broken", body: `{"code":"x"}`, status: 500, code: "internal_error", says: "something went wrong on our side"},
		{name: "503 no executor", who: "pro", body: `{"code":"full"}`, status: 503, code: "service_unavailable", says: "readiness"},
		{name: "504", who: "pro", body: `{"code":"early","timeout":1}`, status: 504, says: `"exit_code":-1,"error":"execution timed out after 1s"`},

		// The plans' table.
		{name: "free: a minute", who: "free", body: field("timeout", "60"), status: 200},
		{name: "free: 1 core and 1 GiB", who: "snug", body: `{"code":"x"}`, status: 200},
		{name: "pro: an hour", who: "pro", body: field("timeout", "3600"), status: 200},
		{name: "pro: more", who: "pro", body: field("timeout", "3601"), status: 429, code: limited, says: "maximum of 3600 seconds"},
		{name: "pro: 4 cores and 4 GiB", who: "four", body: `{"code":"x"}`, status: 200},
		{name: "pro: more cores", who: "five", body: `{"code":"x"}`, status: 429, code: limited, says: "cpu of 5 exceeds the pro plan's maximum of 4; upgrade to enterprise"},
		{name: "pro: more memory", who: "huge", body: `{"code":"x"}`, status: 429, code: limited, says: "memory of 5 GiB exceeds the pro plan's maximum of 4 GiB; upgrade to enterprise"},
		{name: "pro: streaming", who: "pro", body: `{"code":"x"}`, headers: stream, status: 200, says: `"type":"result"`},
		{name: "pro: async", who: "pro", body: `{"code":"x"}`, headers: async, status: 202, says: `"status":"running"`},
		{name: "pro: the sixth at once", who: "busypro", body: `{"code":"x"}`, status: 200},
		{name: "enterprise: as long as the server runs anything", who: "enterprise", body: field("timeout", "3600"), status: 200},
		{name: "enterprise: longer", who: "enterprise", body: field("timeout", "3601"), status: 429, code: limited, says: "this server runs nothing for longer than 3600 seconds"},
		{name: "enterprise: any cores and memory", who: "any", body: `{"code":"x"}`, status: 200},
		{name: "enterprise: streaming", who: "enterprise", body: `{"code":"x"}`, headers: stream, status: 200, says: `"type":"result"`},

		// The request's limits.
		{name: "code of 1 byte", who: "pro", body: `{"code":"x"}`, status: 200, says: `"success":true`},
		{name: "code of 1 MB", who: "pro", body: `{"code":"` + strings.Repeat("#", execution.MaxCode) + `"}`, status: 200, says: `"success":true`},
		{name: "code of more", who: "pro", body: `{"code":"` + strings.Repeat("#", execution.MaxCode+1) + `"}`, status: 400, code: bad, says: "code must be between 1 byte and 1 MB"},
		{name: "python", who: "pro", body: field("language", `"python"`), status: 200},
		{name: "node", who: "pro", body: field("language", `"node"`), status: 200},
		{name: "bash", who: "pro", body: field("language", `"bash"`), status: 200},
		{name: "timeout of 1", who: "pro", body: field("timeout", "1"), status: 200},
		{name: "timeout of 0", who: "pro", body: field("timeout", "0"), status: 400, code: bad, says: "timeout must be at least 1 second"},
		{name: "10 metadata keys", who: "pro", body: field("metadata", object(10, v, "")), status: 200},
		{name: "11 metadata keys", who: "pro", body: field("metadata", object(11, v, "")), status: 400, code: bad, says: "metadata must have at most 10 keys"},
		{name: "metadata key of 40", who: "pro", body: field("metadata", one(strings.Repeat("é", 40), "")), status: 200},
		{name: "metadata key of 41", who: "pro", body: field("metadata", one(strings.Repeat("k", 41), "")), status: 400, code: bad, says: "must be 1 to 40 characters"},
		{name: "metadata value of 256", who: "pro", body: field("metadata", one("k", strings.Repeat("é", 256))), status: 200},
		{name: "metadata value of 257", who: "pro", body: field("metadata", one("k", strings.Repeat("v", 257))), status: 400, code: bad, says: "must be at most 256 characters"},
		{name: "50 variables", who: "pro", body: field("env_vars", object(50, v, "")), status: 200},
		{name: "51 variables", who: "pro", body: field("env_vars", object(51, v, "")), status: 400, code: bad, says: "at most 50 variables"},
		{name: "51 variables after merging", who: "test", body: field("env_vars", object(50, v, "")), status: 400, code: bad, says: "at most 50 variables together with those of the environment"},
		{name: "variable's name of 128", who: "pro", body: field("env_vars", one(strings.Repeat("A", 128), "")), status: 200},
		{name: "variable's name of 129", who: "pro", body: field("env_vars", one(strings.Repeat("A", 129), "")), status: 400, code: bad, says: "1 to 128"},
		{name: "variable's name in lower case", who: "pro", body: field("env_vars", one("a", "")), status: 400, code: bad, says: "uppercase letters"},
		{name: "variable's name with a digit first", who: "pro", body: field("env_vars", one("1A", "")), status: 400, code: bad, says: "starting with a letter"},
		{name: "variable's value of 4,096", who: "pro", body: field("env_vars", one("A", strings.Repeat("é", 4096))), status: 200},
		{name: "variable's value of 4,097", who: "pro", body: field("env_vars", one("A", strings.Repeat("v", 4097))), status: 400, code: bad, says: "at most 4096 characters"},
		{name: "64 KB of variables", who: "pro", body: field("env_vars", full(0)), status: 200},
		{name: "more of them", who: "pro", body: field("env_vars", full(1)), status: 400, code: bad, says: "at most 65536 bytes"},
		{name: "reserved PATH", who: "pro", body: field("env_vars", one("PATH", "/")), status: 400, code: bad, says: `"PATH" is reserved`},
		{name: "reserved HOME", who: "pro", body: field("env_vars", one("HOME", "/")), status: 400, code: bad, says: `"HOME" is reserved`},
		{name: "reserved prefix", who: "pro", body: field("env_vars", one("ATOLL_A", "/")), status: 400, code: bad, says: "the platform uses names"},
		{name: "webhook_url", who: "pro", body: field("webhook_url", `"https://hooks.example/x"`), headers: async, status: 202},
		{name: "webhook_url that is not HTTPS", who: "pro", body: field("webhook_url", `"http://hooks.example/x"`), headers: async, status: 400, code: bad, says: "webhook_url"},
		{name: "webhook_url without a webhook", who: "pro", body: field("webhook_url", `"https://hooks.example/x"`), status: 400, code: bad, says: "needs Prefer: respond-async"},
		{name: "the environment cannot be chosen", who: "pro", body: field("image", `"other"`), status: 400, code: bad, says: `unknown field "image"`},
	}
}

// TestContract sends every row to a real server.
func TestContract(t *testing.T) {
	s := httpapitest.New(t, func(c *httpapitest.Setup) { c.Auth = failingFor{c.Auth, gatewaytest.Token("broken")} })
	contractWorld(t, s)
	srv := httptest.NewServer(s)
	defer srv.Close()
	codes := map[string]bool{}
	for _, c := range contractRows() {
		codes[c.code] = true
		t.Run(c.name, func(t *testing.T) {
			if c.method == "" {
				c.method = http.MethodPost
			}
			if c.path == "" {
				c.path = "/v1/sandbox/execute"
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if c.who != "" {
				r.Header.Set("Authorization", "Bearer "+gatewaytest.Token(c.who))
			}
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			res, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			httpapitest.CheckCommon(t, res)
			contractAnswer(t, c, res, body)
		})
	}
	for _, code := range httpapi.Codes() {
		if !codes[code] {
			t.Errorf("no row returns %s", code)
		}
	}
}

func contractAnswer(t *testing.T, c contractRow, res *http.Response, body []byte) {
	t.Helper()
	if res.StatusCode != c.status {
		t.Fatalf("got %d %.300s, want %d", res.StatusCode, body, c.status)
	}
	text := string(body)
	if c.code != "" {
		var refusal map[string]string
		if err := json.Unmarshal(body, &refusal); err != nil || refusal["error"] != c.code || refusal["message"] == "" {
			t.Errorf("got %s, want %s", body, c.code)
		}
		allowed := []string{"error", "message"}
		if c.status == http.StatusTooManyRequests {
			allowed = []string{"dimension", "error", "message", "resets_at"}
			if refusal["dimension"] == "" {
				t.Errorf("no dimension in %s", body)
			}
		}
		for name := range refusal {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s has %s", body, name)
			}
		}
		text = refusal["message"]
	}
	if !strings.Contains(text, c.says) {
		t.Errorf("got  %.300s\nwant %s", text, c.says)
	}
	if retry := res.Header.Get("Retry-After"); (c.status == http.StatusServiceUnavailable) && retry == "" {
		t.Error("no Retry-After")
	}
}

// failingFor is an Authenticator that breaks on one key.
type failingFor struct {
	httpapi.Authenticator
	token string
}

func (f failingFor) Authenticate(ctx context.Context, token string) (tenant.Principal, error) {
	if token == f.token {
		return tenant.Principal{}, io.ErrUnexpectedEOF
	}
	return f.Authenticator.Authenticate(ctx, token)
}

// contractWorld makes the tenants of the rows, and brings them to where the rows
// begin.
func contractWorld(t *testing.T, s *httpapitest.Server) {
	t.Helper()
	s.Executor.Program(strings.Repeat("#", execution.MaxCode), func(*gatewaytest.Run) int { return 0 })
	s.Executor.Program("full", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.Blocked, ExitCode: -1, NotStarted: true, Kind: fault.Unavailable, Error: "the sandbox failed its readiness check"}
		return 0
	})
	limits := func(cpu float64, memory int64) func(*tenant.Principal) {
		return func(p *tenant.Principal) {
			p.Environment.Limits = runtime.DefaultLimits()
			p.Environment.Limits.CPU, p.Environment.Limits.Memory = cpu, memory
		}
	}
	const GiB = 1 << 30
	past := time.Now().Add(-time.Hour)
	for _, who := range []struct {
		name, plan string
		change     func(*tenant.Principal)
	}{
		{"free", "free", nil}, {"pro", "pro", nil}, {"enterprise", "enterprise", nil}, {"busy", "free", nil}, {"busypro", "pro", nil}, {"revoked", "pro", nil},
		{"expired", "pro", func(p *tenant.Principal) { p.Key.ExpiresAt = &past }},
		{"reads", "pro", func(p *tenant.Principal) { p.Key.Scopes = []tenant.Scope{tenant.ScopeRead} }},
		{"spent", "pro", func(p *tenant.Principal) { p.Tenant.MonthlyCredits = 1e-12 }},
		{"snug", "free", limits(1, GiB)}, {"wide", "free", limits(2, GiB)}, {"large", "free", limits(1, 2*GiB)},
		{"four", "pro", limits(4, 4*GiB)}, {"five", "pro", limits(5, GiB)}, {"huge", "pro", limits(1, 5*GiB)}, {"any", "enterprise", limits(64, 64*GiB)},
	} {
		change := who.change
		if change == nil {
			change = func(*tenant.Principal) {}
		}
		p := s.Principal(t, who.name, who.plan, change)
		if who.name == "revoked" {
			if err := s.DB.Tenants().RevokeKey(t.Context(), p.Tenant.ID, p.Key.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	as := func(who, body string, headers ...string) {
		if w := httpapitest.Post(s, body, append(headers, "Authorization", "Bearer "+gatewaytest.Token(who))...); w.Code != 200 {
			t.Fatalf("%s: %d %s", who, w.Code, w.Body)
		}
	}
	as("pro", `{"code":"x"}`, "Idempotency-Key", "used")
	as("spent", `{"code":"x"}`)
	started, finish := make(chan struct{}), make(chan struct{})
	s.Executor.Program("hold", func(*gatewaytest.Run) int { started <- struct{}{}; <-finish; return 0 })
	ended := make(chan int)
	for _, who := range []string{"busy", "busypro"} {
		for range 5 {
			go func() {
				ended <- httpapitest.Post(s, `{"code":"hold"}`, "Authorization", "Bearer "+gatewaytest.Token(who)).Code
			}()
			<-started
		}
	}
	t.Cleanup(func() {
		close(finish)
		for range 10 {
			if code := <-ended; code != 200 {
				t.Errorf("one that held a place: %d", code)
			}
		}
	})
}
