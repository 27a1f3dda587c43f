package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/atoll-run/atoll/internal/core/address/addresstest"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// received is a request as a receiver saw it.
type received struct {
	header http.Header
	body   []byte
	proto  string
}

// receiver is an HTTPS server for hooks.test, which answer decides on.
func receiver(t *testing.T, answer http.HandlerFunc) (url string, got chan received, roots *x509.CertPool) {
	t.Helper()
	got = make(chan received, 10)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header.Clone(), body, r.Method + " " + r.Proto + " " + r.URL.RequestURI()}
		answer(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots = x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	// The certificate of httptest is for example.com.
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	return "https://example.com:" + port + "/hook?k=v", got, roots
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	if cfg.Resolver == nil {
		z := serveDNS(t)
		z.set("example.com", "127.0.0.1")
		cfg.Resolver = z.resolver()
	}
	if cfg.MaxOutput == 0 {
		cfg.MaxOutput = 10 << 20
	}
	cfg.Version = "1.2.3"
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ended(url, secret string) *execution.Execution {
	at := time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC)
	return &execution.Execution{
		TraceID: "trc_0123456789abcdef0123456789abcdef", Tenant: "ten_1", Status: execution.Success,
		Stdout: []byte("done\n"), StdoutBytes: 5, CreatedAt: at.Add(-60142 * time.Millisecond), CompletedAt: at,
		Webhook: execution.WebhookTarget{URL: url, Secret: secret},
	}
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func TestMessage(t *testing.T) {
	url, got, roots := receiver(t, ok)
	c := client(t, Config{RootCAs: roots, Allow: []string{"example.com"}})
	if tried, err := c.Deliver(t.Context(), ended(url, "")); err != nil || !tried {
		t.Fatal(tried, err)
	}
	r := <-got
	const want = `{"event":"execution.completed","trace_id":"trc_0123456789abcdef0123456789abcdef","timestamp":"2026-03-16T12:00:00Z",` +
		`"result":{"success":true,"stdout":"done\n","stderr":"","exit_code":0,"duration_ms":60142,"error":null,"stdout_truncated":false,"stderr_truncated":false},` +
		`"output_truncated":false}`
	if string(r.body) != want {
		t.Errorf("the body is %s", r.body)
	}
	if r.proto != "POST HTTP/2.0 /hook?k=v" {
		t.Errorf("asked by %s", r.proto)
	}
	h := r.header
	if h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "Atoll/1.2.3" || h.Get("webhook-id") != "evt_0123456789abcdef0123456789abcdef" || h.Get("webhook-timestamp") == "" {
		t.Errorf("headers: %v", h)
	}
	if h.Get("X-Atoll-Signature") != "" || h.Get("webhook-signature") != "" {
		t.Error("signed without a secret")
	}

	e := ended(url, "")
	e.Status, e.ExitCode, e.Error = execution.Cancelled, -1, "Cancelled by user"
	e.Stdout, e.OutputTruncated, e.StdoutTruncated = []byte("a\xff\x00b<"), true, true
	if _, err := c.Deliver(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal((<-got).body, &m); err != nil {
		t.Fatal(err)
	}
	if m.Event != "execution.cancelled" || m.Result.Success || *m.Result.Error != "Cancelled by user" || m.Result.ExitCode != -1 ||
		m.Result.Stdout != "a\uFFFD\x00b<" || !m.Result.StdoutTruncated || !m.OutputTruncated {
		t.Errorf("got %+v", m)
	}
}

func TestSignature(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	whsec := "whsec_" + base64.StdEncoding.EncodeToString(key)
	url, got, roots := receiver(t, ok)
	c := client(t, Config{RootCAs: roots, Allow: []string{"example.com"}})
	for _, secret := range []string{whsec, strings.TrimRight(whsec, "="), "a plain secret"} {
		if _, err := c.Deliver(t.Context(), ended(url, secret)); err != nil {
			t.Fatal(err)
		}
		r := <-got
		verifier, err := standardwebhooks.NewWebhook(whsec)
		if !strings.HasPrefix(secret, "whsec_") {
			verifier, err = standardwebhooks.NewWebhookRaw([]byte(secret))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(r.body, r.header); err != nil {
			t.Errorf("%s: the reference library says %v", secret, err)
		}
		if verifier.Verify(append(r.body, ' '), r.header) == nil {
			t.Error("a changed body is verified")
		}
		h := hmac.New(sha256.New, []byte(secret))
		h.Write(r.body)
		if want := "sha256=" + hex.EncodeToString(h.Sum(nil)); r.header.Get("X-Atoll-Signature") != want {
			t.Errorf("X-Atoll-Signature is %s, want %s", r.header.Get("X-Atoll-Signature"), want)
		}
	}
	for _, s := range []string{"", "x", whsec, "whsec_AAAA", strings.Repeat("s", 256)} {
		if err := CheckSecret(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"whsec_", "whsec_!", "a b", "ä", "\x00", strings.Repeat("s", 257)} {
		if CheckSecret(s) == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestStoredOutput(t *testing.T) {
	url, got, roots := receiver(t, ok)
	blobs := map[string]string{
		"outputs/ten_1/trc_0123456789abcdef0123456789abcdef/stdout": strings.Repeat("\x01", 3<<20) + "more",
		"outputs/ten_1/trc_0123456789abcdef0123456789abcdef/stderr": "small",
	}
	open := func(_ context.Context, name string) (io.ReadCloser, error) {
		b, ok := blobs[name]
		if !ok {
			return nil, errors.New("no blob " + name)
		}
		return io.NopCloser(strings.NewReader(b)), nil
	}
	c := client(t, Config{RootCAs: roots, Allow: []string{"example.com"}, MaxOutput: 3 << 20, Open: open})
	e := ended(url, "s")
	e.Stored, e.Stdout, e.StdoutBytes, e.StdoutTruncated = true, nil, 3<<20+4, true
	if _, err := c.Deliver(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal((<-got).body, &m); err != nil {
		t.Fatal(err)
	}
	if m.Result.Stdout != strings.Repeat("\x01", 3<<20) || m.Result.Stderr != "small" || !m.Result.StdoutTruncated {
		t.Errorf("got %d and %d bytes", len(m.Result.Stdout), len(m.Result.Stderr))
	}

	clear(blobs)
	if tried, err := c.Deliver(t.Context(), e); err == nil || tried {
		t.Errorf("a missing blob: tried %t, %v", tried, err)
	}
}

func TestFailures(t *testing.T) {
	elsewhere, others, _ := receiver(t, ok)
	block := make(chan struct{})
	defer close(block)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // "" for delivered
	}{
		"200": {func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte("x"), 1<<20)) }, ""},
		"299": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, ""},
		"301": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusMovedPermanently)
		}, "redirects are not followed"},
		"307": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		}, "answered 307"},
		"304":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "answered 304"},
		"404":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "answered 404"},
		"500":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "answered 500"},
		"cut":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"mute": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline"},
		"head": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 128<<10)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, _, roots := receiver(t, c.answer)
			cfg := Config{RootCAs: roots, Allow: []string{"example.com"}}
			if name == "mute" {
				cfg.Timeout = 2 * time.Second
			}
			cl := client(t, cfg)
			tried, err := cl.Deliver(t.Context(), ended(url, ""))
			if !tried {
				t.Error("not tried")
			}
			switch {
			case name == "cut" || name == "head":
				if err == nil {
					t.Error("delivered")
				}
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "k=v") {
				t.Errorf("the error shows the URL: %v", err)
			}
		})
	}
	if len(others) != 0 {
		t.Error("a redirect was followed")
	}
}

// A name that resolved to a public address when it was accepted is refused
// when it resolves to another at the time of the connection.
func TestRebinding(t *testing.T) {
	url, got, roots := receiver(t, ok)
	z := serveDNS(t)
	z.turn("example.com", []string{"203.0.113.7"}, []string{"127.0.0.1"})
	c := client(t, Config{RootCAs: roots, Resolver: z.resolver()})
	if err := c.CheckURL(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	tried, err := c.Deliver(t.Context(), ended(url, ""))
	if !tried || err == nil || !strings.Contains(err.Error(), "127.0.0.1: refused") {
		t.Errorf("got %v", err)
	}
	if len(got) != 0 {
		t.Error("the message arrived")
	}
}

// Every connection to a closed address is refused, also when the URL names it
// directly or by a name that is allowed without its address being so.
func TestConnectionsRefused(t *testing.T) {
	z := serveDNS(t)
	c := client(t, Config{Resolver: z.resolver()})
	for _, s := range addresstest.Closed {
		z.set("example.com", s)
		for _, url := range []string{"https://" + net.JoinHostPort(s, "443"), "https://example.com/"} {
			if _, err := c.Deliver(t.Context(), ended(url, "")); err == nil || !strings.Contains(err.Error(), "refused: private") {
				t.Errorf("%s (%s): %v", url, s, err)
			}
		}
	}
}

func TestEnvironmentProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	url, _, roots := receiver(t, ok)
	c := client(t, Config{RootCAs: roots, Allow: []string{"127.0.0.0/8"}})
	if _, err := c.Deliver(t.Context(), ended(url, "")); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	url, _, roots := receiver(t, ok)
	if _, err := client(t, Config{Allow: []string{"example.com"}}).Deliver(t.Context(), ended(url, "")); err == nil || !strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), "setting webhook_ca") {
		t.Errorf("an unknown authority: %v", err)
	}
	z := serveDNS(t)
	z.set("other.test", "127.0.0.1")
	other := strings.Replace(url, "example.com", "other.test", 1)
	if _, err := client(t, Config{RootCAs: roots, Resolver: z.resolver(), Allow: []string{"other.test"}}).Deliver(t.Context(), ended(other, "")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another host's certificate: %v", err)
	}

	old := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // this is what is refused
	old.StartTLS()
	defer old.Close()
	roots.AddCert(old.Certificate())
	if _, err := client(t, Config{RootCAs: roots, Allow: []string{"127.0.0.1"}}).Deliver(t.Context(), ended(old.URL, "")); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
}

// A shutdown in the middle is not the receiver's failure.
func TestCancelled(t *testing.T) {
	url, got, roots := receiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := client(t, Config{RootCAs: roots, Allow: []string{"example.com"}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	if tried, err := c.Deliver(ctx, ended(url, "")); tried || !errors.Is(err, context.Canceled) {
		t.Errorf("tried %t, %v", tried, err)
	}
}

func TestAuthoritiesChange(t *testing.T) {
	url, got, roots := receiver(t, ok)
	c := client(t, Config{Allow: []string{"example.com"}})
	for _, step := range []struct {
		roots     *x509.CertPool
		delivered bool
	}{{nil, false}, {roots, true}, {nil, false}} {
		c.SetRootCAs(step.roots)
		tried, err := c.Deliver(t.Context(), ended(url, ""))
		if !tried || (err == nil) != step.delivered {
			t.Errorf("with the authority: %t; tried: %t, %v", step.delivered, tried, err)
		}
		if step.delivered {
			<-got
		} else if err != nil && !strings.Contains(err.Error(), "webhook_ca") {
			t.Errorf("the error names no setting: %v", err)
		}
	}
}
