package e2b_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	domain "github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/compat/e2b"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// signer signs with a key that all tests know.
type signer struct{}

func (signer) Sum(data []byte, purpose string) []byte {
	h := hmac.New(sha256.New, []byte("key"))
	h.Write([]byte(purpose + "\x00"))
	h.Write(data)
	return h.Sum(nil)[:16]
}

func (s signer) Check(data []byte, purpose string, sum []byte) bool {
	return hmac.Equal(s.Sum(data, purpose), sum)
}

// none has no sandbox, as for another tenant's caller.
type none struct{ sandboxes.Sandboxes }

func (none) Get(_ context.Context, _ *tenant.Principal, _, name string) (*domain.Sandbox, error) {
	return nil, fault.New(fault.NotFound, "there is no sandbox %q", name)
}

const id = "sb-0123456789abcdef"

// serve returns a server with the handlers to sandboxes.
func serve(t testing.TB, of sandboxes.Sandboxes, change ...func(*httpapitest.Setup)) (s *httpapitest.Server, handlers *e2b.Handlers) {
	t.Helper()
	s = httpapitest.New(t, append(change, func(c *httpapitest.Setup) {
		handlers = e2b.New(e2b.Config{Sandboxes: sandboxes.New(sandboxes.Config{Sandboxes: of}), Keys: c.World, Signer: signer{}, Hosts: hosts(t), Holders: holders{c.World}})
		c.E2B = handlers
		c.Record = func(context.Context, *tenant.Principal, domain.Call) error { return nil }
	})...)
	t.Cleanup(handlers.Close)
	return s, handlers
}

// open returns a server with the handlers, and an access token of its caller.
func open(t testing.TB) (s http.Handler, token string, caller *tenant.Principal) {
	t.Helper()
	made, handlers := serve(t, none{})
	token, err := e2b.Token(handlers, made.Caller, id)
	if err != nil {
		t.Fatal(err)
	}
	return made.Server, token, made.Caller // without the check of answers against our own document
}

func ask(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return httpapitest.Ask(s, method, e2b.Prefix+path, body, append([]string{"Authorization", ""}, headers...)...)
}

// TestRefusals: what is refused is refused in the protocol's words, by REST and by calls.
func TestRefusals(t *testing.T) {
	made, handlers := serve(t, none{})
	s := made.Server
	token, err := e2b.Token(handlers, made.Caller, id)
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := e2b.Traffic(handlers, made.Caller, id)
	if err != nil {
		t.Fatal(err)
	}
	const list, start = "/filesystem.Filesystem/ListDir", "/process.Process/Start"
	for name, c := range map[string]struct {
		method, path, body string
		header             [2]string
		status             int
		code, says         string
	}{
		"no key":              {"GET", "/sandboxes", "", [2]string{"X-Api-Key", ""}, 401, "", "E2B_API_KEY"},
		"our header":          {"GET", "/sandboxes", "", [2]string{"Authorization", "Bearer " + httpapitest.Key}, 401, "", "E2B_API_KEY"},
		"a wrong key":         {"GET", "/sandboxes", "", [2]string{"X-Api-Key", httpapitest.Key + "x"}, 401, "", "API key"},
		"unknown sandbox":     {"GET", "/sandboxes/" + id, "", [2]string{"X-Api-Key", httpapitest.Key}, 404, "", id},
		"not an id":           {"DELETE", "/sandboxes/a..b", "", [2]string{"X-Api-Key", httpapitest.Key}, 404, "", "a..b"},
		"unknown field":       {"POST", "/sandboxes", `{"templateID":"base","gpu":1}`, [2]string{"X-Api-Key", httpapitest.Key}, 400, "", "gpu"},
		"volumes":             {"POST", "/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"v"}]}`, [2]string{"X-Api-Key", httpapitest.Key}, 400, "", "volumeMounts"},
		"too long":            {"POST", "/sandboxes", `{"templateID":"base","timeout":99999999999}`, [2]string{"X-Api-Key", httpapitest.Key}, 400, "", "timeout"},
		"templates":           {"POST", "/v3/templates", "{}", [2]string{"X-Api-Key", httpapitest.Key}, 400, "", "templates"},
		"no token":            {"POST", list, `{"path":"/"}`, [2]string{"X-Access-Token", ""}, 401, "unauthenticated", "access token"},
		"a key for a token":   {"POST", list, `{"path":"/"}`, [2]string{"X-Access-Token", httpapitest.Key}, 401, "unauthenticated", "access token"},
		"a token cut":         {"POST", list, `{"path":"/"}`, [2]string{"X-Access-Token", token[:len(token)-4]}, 401, "unauthenticated", "access token"},
		"traffic, files":      {"POST", list, `{"path":"/"}`, [2]string{"E2b-Traffic-Access-Token", traffic}, 401, "unauthenticated", "access token"},
		"traffic for envd":    {"POST", list, `{"path":"/"}`, [2]string{"X-Access-Token", traffic}, 401, "unauthenticated", "access token"},
		"traffic, code":       {"POST", "/execute", `{"code":"1"}`, [2]string{"E2b-Traffic-Access-Token", traffic}, 401, "", "access token"},
		"traffic, contexts":   {"DELETE", "/contexts/none", "", [2]string{"E2b-Traffic-Access-Token", traffic}, 502, "", "The sandbox was not found"},
		"access for traffic":  {"DELETE", "/contexts/none", "", [2]string{"E2b-Traffic-Access-Token", token}, 401, "", "access token"},
		"gone":                {"POST", list, `{"path":"/"}`, [2]string{"X-Access-Token", token}, 503, "unavailable", "The sandbox was not found"},
		"gone, a file":        {"GET", "/files?path=/x", "", [2]string{"X-Access-Token", token}, 502, "", "The sandbox was not found"},
		"not JSON":            {"POST", list, `{`, [2]string{"X-Access-Token", token}, 400, "invalid_argument", ""},
		"no path parameter":   {"GET", "/files", "", [2]string{"X-Access-Token", token}, 400, "", "path"},
		"no envelope":         {"POST", start, `{}`, [2]string{"X-Access-Token", token}, 415, "", ""},
		"a token in REST":     {"GET", "/sandboxes", "", [2]string{"X-Access-Token", token}, 401, "", "E2B_API_KEY"},
		"no such context":     {"DELETE", "/contexts/none", "", [2]string{"X-Access-Token", token}, 502, "", "The sandbox was not found"},
		"no such language":    {"POST", "/execute", `{"code":"1","language":"cobol"}`, [2]string{"X-Access-Token", token}, 400, "", "cobol"},
		"variables of a run":  {"POST", "/execute", `{"code":"1","env_vars":{"A":"b"}}`, [2]string{"X-Access-Token", token}, 400, "", "env_vars"},
		"metadata of a file":  {"POST", "/files?path=/x", "x", [2]string{"X-Metadata-A", "b"}, 401, "", "access token"},
		"nothing at the path": {"GET", "/volumes", "", [2]string{"X-Api-Key", httpapitest.Key}, 400, "", "volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(s, c.method, c.path, c.body, c.header[0], c.header[1])
			var body struct {
				Code    any    `json:"code"`
				Message string `json:"message"`
			}
			if w.Code != http.StatusUnsupportedMediaType {
				if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
					t.Errorf("%v in %s", err, w.Body)
				}
				want := any(float64(c.status))
				if c.code != "" {
					want = c.code
				}
				if body.Code != want {
					t.Errorf("code is %v, want %v", body.Code, want)
				}
			}
			if w.Code != c.status || !strings.Contains(body.Message, c.says) {
				t.Errorf("%d %s, want %d with %q", w.Code, w.Body, c.status, c.says)
			}
		})
	}
}

// TestTokenOfAnotherSandbox: a client that mixes two sandboxes up is told so, and a key
// that has gone takes its tokens with it.
func TestTokenOfAnotherSandbox(t *testing.T) {
	s, token, caller := open(t)
	w := ask(s, http.MethodGet, "/files?path=/x", "", "X-Access-Token", token, "E2b-Sandbox-Id", "sb-00000000000000ff")
	if w.Code != 401 || !strings.Contains(w.Body.String(), "not for the sandbox") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	other := *caller
	other.Key.ID = "key_none"
	handlers := e2b.New(e2b.Config{Signer: signer{}})
	defer handlers.Close()
	stale, err := e2b.Token(handlers, &other, id)
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(s, http.MethodGet, "/files?path=/x", "", "X-Access-Token", stale); w.Code != 401 {
		t.Errorf("of a key that there is not: %d %s", w.Code, w.Body)
	}
}

// TestRates: the rates of a plan hold for each way into the handlers, and the refusal says when
// to come again. Another tenant is not refused.
func TestRates(t *testing.T) {
	s, handlers := serve(t, none{})
	if err := s.DB.Tenants().PutPlan(t.Context(), tenant.Plan{Name: "slow", MaxOutput: 1 << 20, MaxRequestRate: 2}); err != nil {
		t.Fatal(err)
	}
	token, err := e2b.Token(handlers, s.Principal(t, "slow", "slow"), id)
	if err != nil {
		t.Fatal(err)
	}
	ways := []struct{ method, path, header, value string }{
		{"GET", "/sandboxes/" + id, "X-Api-Key", gatewaytest.Token("slow")},
		{"GET", "/files?path=/x", "X-Access-Token", token},
		{"POST", "/filesystem.Filesystem/Stat", "X-Access-Token", token},
		{"POST", "/execute", "X-Access-Token", token},
	}
	refused, began := 0, time.Now()
	for range 30 { // each counts for all
		if ask(s.Server, "GET", "/sandboxes/"+id, "", "X-Api-Key", gatewaytest.Token("slow")).Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 10-int(2*time.Since(began).Seconds()) { // a slow machine gets some back
		t.Errorf("%d of 30 requests were refused", refused)
	}
	for _, way := range ways {
		w := ask(s.Server, way.method, way.path, "{}", way.header, way.value)
		for n := 0; n < 10 && w.Code != http.StatusTooManyRequests; n++ { // a slow machine may have let time pass
			w = ask(s.Server, way.method, way.path, "{}", way.header, way.value)
		}
		if again, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != http.StatusTooManyRequests || err != nil || again < 1 || again > 10 || !strings.Contains(w.Body.String(), "the plan slow allows this") {
			t.Errorf("%s: %d, Retry-After %q, %s", way.path, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	if w := ask(s.Server, "GET", "/sandboxes/"+id, "", "X-Api-Key", httpapitest.Key); w.Code != http.StatusNotFound {
		t.Errorf("another tenant: %d %s", w.Code, w.Body)
	}
}

// FuzzCall sends bytes to every procedure, as one message and in envelopes. None may fail
// in a way that is the server's fault.
func FuzzCall(f *testing.F) {
	s, token, _ := open(f)
	procedures := []string{
		"/process.Process/List", "/process.Process/Start", "/process.Process/Connect", "/process.Process/Update", "/process.Process/SendInput",
		"/process.Process/StreamInput", "/process.Process/SendSignal", "/process.Process/CloseStdin", "/filesystem.Filesystem/Stat",
		"/filesystem.Filesystem/ListDir", "/filesystem.Filesystem/MakeDir", "/filesystem.Filesystem/Move", "/filesystem.Filesystem/Remove",
		"/filesystem.Filesystem/WatchDir", "/filesystem.Filesystem/CreateWatcher", "/filesystem.Filesystem/GetWatcherEvents", "/filesystem.Filesystem/RemoveWatcher",
	}
	start := `{"process":{"cmd":"/bin/bash","args":["-l","-c","id"],"envs":{"A":"b"},"cwd":"/"},"pty":{"size":{"cols":80,"rows":24}},"stdin":false}`
	for i := range procedures {
		f.Add(uint8(i), false, []byte(`{"path":"/x","process":{"pid":1},"signal":15,"input":{"stdin":"aGk="}}`))
		f.Add(uint8(i), true, append([]byte{0, 0, 0, 0, byte(len(start))}, start...))
	}
	f.Add(uint8(1), true, []byte{0, 255, 255, 255, 255, '{'})
	f.Add(uint8(5), true, []byte{3, 0, 0, 0, 2, '{', '}', 2, 0, 0, 0, 0})
	f.Add(uint8(1), false, []byte("{\"process\":{\"cmd\":\"\x00\"}}"))
	f.Fuzz(func(t *testing.T, at uint8, enveloped bool, body []byte) {
		path, media := procedures[int(at)%len(procedures)], "application/json"
		if enveloped {
			media = "application/connect+json"
		}
		w := ask(s, http.MethodPost, path, string(body), "X-Access-Token", token, "Content-Type", media, "Connect-Protocol-Version", "1")
		said := w.Body.String()
		if w.Code == 500 || strings.Contains(said, `"code":"internal"`) || strings.Contains(said, `"code":"unknown"`) {
			t.Errorf("%s: %d %q", path, w.Code, said)
		}
	})
}

// FuzzToken: no text but a token of the server is one.
func FuzzToken(f *testing.F) {
	s, token, _ := open(f)
	f.Add(token[1:])
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		if text == token {
			return
		}
		if w := ask(s, http.MethodGet, "/files?path=/x", "", "X-Access-Token", text); w.Code != 401 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
