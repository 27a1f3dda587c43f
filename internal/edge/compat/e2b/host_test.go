package e2b_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	domain "github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/compat/e2b"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// hosts are names of sandboxes below localhost.
func hosts(t testing.TB) *preview.Previews {
	t.Helper()
	base, err := preview.ParseBase("http://*.localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	return preview.New(nil, signer{}, base)
}

// holders are the keys of the one sandbox: that of another caller, and the test's.
type holders struct{ *gatewaytest.World }

func (h holders) Holders(ctx context.Context, of runtime.ID) (tenant.ID, []string, error) {
	if of != id {
		return "", nil, nil
	}
	p, err := h.Authenticate(ctx, httpapitest.Key)
	if err != nil {
		return "", nil, err
	}
	return p.Tenant.ID, []string{"key_0000000000000000", p.Key.ID}, nil
}

// signature is what E2B's clients sign a file's URL with.
func signature(path, operation, user, token, until string) string {
	raw := path + ":" + operation + ":" + user + ":" + token
	if until != "" {
		raw += ":" + until
	}
	sum := sha256.Sum256([]byte(raw))
	return "v1_" + strings.TrimRight(base64.StdEncoding.EncodeToString(sum[:]), "=")
}

// TestSignedURLs: what a signature is for is allowed, and nothing else.
func TestSignedURLs(t *testing.T) {
	o := &one{}
	s, handlers := serve(t, o)
	token, err := e2b.Token(handlers, s.Caller, id)
	if err != nil {
		t.Fatal(err)
	}
	names := hosts(t)
	soon, past := fmt.Sprint(time.Now().Unix()+100), fmt.Sprint(time.Now().Unix()-1)
	here := "49983-" + names.Every(id)
	for name, c := range map[string]struct {
		host, method, path, query string
		status                    int
		says                      string
	}{
		"write":                 {here, "POST", "/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "write", "", token, "")), 200, "/x"},
		"in time":               {here, "POST", "/files", "path=/x&signature_expiration=" + soon + "&signature=" + url.QueryEscape(signature("/x", "write", "", token, soon)), 200, "/x"},
		"of a user":             {here, "POST", "/files", "path=/x&username=user&signature=" + url.QueryEscape(signature("/x", "write", "user", token, "")), 200, "/x"},
		"too late":              {here, "POST", "/files", "path=/x&signature_expiration=" + past + "&signature=" + url.QueryEscape(signature("/x", "write", "", token, past)), 401, "expired"},
		"without its end":       {here, "POST", "/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "write", "", token, soon)), 401, "not valid"},
		"with a later end":      {here, "POST", "/files", "path=/x&signature_expiration=" + soon + "1&signature=" + url.QueryEscape(signature("/x", "write", "", token, soon)), 401, "not valid"},
		"no end":                {here, "POST", "/files", "path=/x&signature_expiration=x&signature=v1_", 401, "not valid"},
		"another path":          {here, "POST", "/files", "path=/y&signature=" + url.QueryEscape(signature("/x", "write", "", token, "")), 401, "not valid"},
		"two paths":             {here, "POST", "/files", "path=/x&path=/y&signature=" + url.QueryEscape(signature("/x", "write", "", token, "")), 401, "not valid"},
		"another user":          {here, "POST", "/files", "path=/x&username=root&signature=" + url.QueryEscape(signature("/x", "write", "user", token, "")), 401, "not valid"},
		"a reader writes":       {here, "POST", "/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "read", "", token, "")), 401, "not valid"},
		"a writer reads":        {here, "GET", "/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "write", "", token, "")), 401, "not valid"},
		"no token in it":        {here, "POST", "/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "write", "", "", "")), 401, "not valid"},
		"of no sandbox":         {"49983-" + names.Every("sb-00000000000000ff"), "POST", "/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "write", "", token, "")), 401, "not valid"},
		"at a wrong name":       {"49983-" + id + "-" + strings.Repeat("a", 26), "POST", "/files", "path=/x&signature=x", 404, ""},
		"at the id alone":       {"49983-" + id, "POST", "/files", "path=/x&signature=x", 404, ""},
		"at another port":       {"8000-" + names.Every(id), "POST", "/files", "path=/x&signature=x", 404, ""},
		"another service":       {here, "POST", "/filesystem.Filesystem/Stat", "signature=" + url.QueryEscape(signature("/x", "read", "", token, "")), 401, "access token"},
		"the API has none":      {"", "POST", "/e2b/files", "path=/x&signature=" + url.QueryEscape(signature("/x", "write", "", token, "")), 401, "access token"},
		"the API is not here":   {here, "GET", "/sandboxes", "", 401, "elsewhere"},
		"nothing else is, too":  {here, "GET", "/v3/templates", "", 401, "elsewhere"},
		"a path out of its own": {here, "GET", "/../v1/executions", "", 307, ""}, // to one that is below /e2b, too
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path+"?"+c.query, strings.NewReader("content"))
			r.Host = c.host + ".localhost:8080"
			r.Header.Set("Content-Type", "application/octet-stream")
			r.Header.Set("X-Api-Key", httpapitest.Key)
			w := httptest.NewRecorder()
			switch in := handlers.Services(r); {
			case in != nil:
				s.Server.ServeHTTP(w, in)
			case c.host == "":
				s.Server.ServeHTTP(w, r)
			default:
				w.WriteHeader(http.StatusNotFound) // the host is a preview's, or of none
			}
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %s, want %d with %q", w.Code, w.Body, c.status, c.says)
			}
		})
	}
}

// TestServicesByHost: the services of a sandbox answer at its host as they do below the
// API's, for its own token alone.
func TestServicesByHost(t *testing.T) {
	o := &one{}
	s, handlers := serve(t, o)
	for of, status := range map[runtime.ID]int{id: 200, "sb-00000000000000ff": 401} {
		token, err := e2b.Token(handlers, s.Caller, of)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/filesystem.Filesystem/Stat", strings.NewReader(`{"path":"/x"}`))
		r.Host = "49983-" + hosts(t).Every(id) + ".localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Access-Token", token)
		r.Header.Set("E2b-Sandbox-Id", hosts(t).Every(of))
		w := httptest.NewRecorder()
		s.Server.ServeHTTP(w, handlers.Services(r))
		if w.Code != status {
			t.Errorf("%s: %d %s", of, w.Code, w.Body)
		}
	}
}

// TestPrivateTraffic: ports of a sandbox that was made so want its token, which goes no
// further.
func TestPrivateTraffic(t *testing.T) {
	s, handlers := serve(t, none{})
	token := func(of runtime.ID) string {
		token, err := e2b.Traffic(handlers, s.Caller, of)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	access, err := e2b.Token(handlers, s.Caller, id)
	if err != nil {
		t.Fatal(err)
	}
	open, private := &domain.Sandbox{ID: id}, &domain.Sandbox{ID: id, Env: map[string]string{"E2B_PRIVATE_TRAFFIC": "true"}}
	for name, c := range map[string]struct {
		sb    *domain.Sandbox
		token string
		kind  fault.Kind
	}{
		"open": {open, "", fault.Internal}, "open, with a token": {open, token(id), fault.Internal},
		"private": {private, "", fault.Forbidden}, "with its token": {private, token(id), fault.Internal},
		"with another's": {private, token("sb-00000000000000ff"), fault.Forbidden}, "with none": {private, "x", fault.Forbidden}, "with the access token": {private, access, fault.Forbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("E2b-Traffic-Access-Token", c.token)
		r.Header.Set("X-Access-Token", "of the program")
		err := handlers.Admit(r, c.sb)
		if (err == nil) != (c.kind == fault.Internal) || err != nil && fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
		if r.Header.Get("E2b-Traffic-Access-Token") != "" || r.Header.Get("X-Access-Token") != "of the program" {
			t.Errorf("%s: passed on with %v", name, r.Header)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Access-Token", access)
	if err := handlers.Admit(r, open); err != nil || r.Header.Get("X-Access-Token") != "" {
		t.Errorf("%v, passed on with %v", err, r.Header)
	}
}
