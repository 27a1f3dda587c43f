package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCrossOrigin(t *testing.T) {
	const app, evil = "https://app.example.com", "https://evil.example"
	for name, c := range map[string]struct {
		origins          []string
		path, method     string
		from             []string
		asks             string // Access-Control-Request-Method
		allowed          string
		status           int
		varies, answered bool
	}{
		"off":                       {nil, "/v1/models", "GET", []string{app}, "", "", 200, false, true},
		"a page of the list":        {[]string{app}, "/v1/models", "GET", []string{app}, "", app, 200, true, true},
		"another page":              {[]string{app}, "/v1/models", "GET", []string{evil}, "", "", 200, true, true},
		"null":                      {[]string{app}, "/v1/models", "GET", []string{"null"}, "", "", 200, true, true},
		"no page":                   {[]string{app}, "/v1/models", "GET", nil, "", "", 200, true, true},
		"two origins":               {[]string{app}, "/v1/models", "GET", []string{app, app}, "", "", 200, true, true},
		"a longer name":             {[]string{app}, "/v1/models", "GET", []string{app + ".evil.example"}, "", "", 200, true, true},
		"any":                       {[]string{"*"}, "/v1/models", "GET", []string{evil}, "", "*", 200, true, true},
		"a preflight":               {[]string{app}, "/v1/models", "OPTIONS", []string{app}, "POST", app, 204, true, false},
		"a preflight of another":    {[]string{app}, "/v1/models", "OPTIONS", []string{evil}, "POST", "", 200, true, true},
		"no preflight":              {[]string{app}, "/v1/models", "OPTIONS", []string{app}, "", app, 200, true, true},
		"what administers":          {[]string{"*"}, "/v1/admin/tenants", "OPTIONS", []string{app}, "GET", "", 200, false, true},
		"what is not below /v1":     {[]string{"*"}, "/metrics", "GET", []string{app}, "", "", 200, false, true},
		"another port of the pages": {[]string{app}, "/v1/models", "GET", []string{app + ":8443"}, "", "", 200, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			answered := false
			h := crossOrigin(func() []string { return c.origins }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answered = true; w.WriteHeader(http.StatusOK) }))
			r := httptest.NewRequest(c.method, c.path, nil)
			for _, o := range c.from {
				r.Header.Add("Origin", o)
			}
			if c.asks != "" {
				r.Header.Set("Access-Control-Request-Method", c.asks)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			got := w.Header()
			if w.Code != c.status || got.Get("Access-Control-Allow-Origin") != c.allowed || (got.Get("Vary") == "Origin") != c.varies || answered != c.answered {
				t.Errorf("%d %v, answered %v", w.Code, got, answered)
			}
			if got.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
			if !c.answered && (got.Get("Access-Control-Max-Age") != "600" || !strings.Contains(got.Get("Access-Control-Allow-Headers"), "Idempotency-Key") || !strings.Contains(got.Get("Access-Control-Allow-Methods"), "DELETE")) {
				t.Errorf("the preflight: %v", got)
			}
			if c.allowed != "" && c.answered && !strings.Contains(got.Get("Access-Control-Expose-Headers"), "X-Trace-Id") {
				t.Errorf("the page cannot read the trace id: %v", got)
			}
		})
	}
}

func TestCheckOrigins(t *testing.T) {
	for _, good := range [][]string{nil, {"*"}, {"https://a.example", "http://localhost:5173"}} {
		if err := CheckOrigins(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]string{{"*", "https://a.example"}, {"https://*.example"}, {"https://a.example/"}, {""}} {
		if CheckOrigins(bad) == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
