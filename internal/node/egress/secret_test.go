package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const stands = "atoll_placeholder_0123456789"

// seen is what a server was told.
type seen struct {
	mu   sync.Mutex
	text string
}

func (s *seen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.text
	s.text = ""
	return out
}

func (s *seen) handler(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	s.mu.Lock()
	s.text += fmt.Sprintf("%s %s %s %s key=%s basic=%s:%s q=%s", r.Proto, r.Host, r.RequestURI, body, r.Header.Get("X-Key"), user, password, r.URL.Query().Get("key"))
	s.mu.Unlock()
	fmt.Fprint(w, "thanks")
}

func openAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(filepath.Join(t.TempDir(), "authority.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// secretRig has one secret, for example.com, and a client that trusts both the
// installation's authority and the servers' own.
func secretRig(t *testing.T, http2 bool) (*rig, *http.Client, *seen) {
	t.Helper()
	got := &seen{}
	server := serveHTTP(t, good+":443", got.handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	other := serveHTTP(t, evil+":443", got.handler)
	other.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	a := openAuthority(t)
	r := newRig(t, Config{Authority: a, Roots: func() *x509.CertPool { return roots }}, hosts("example.com", "other.test", "www.example.com"))
	r.zone.set("example.com", good)
	r.zone.set("www.example.com", evil)
	r.zone.set("other.test", evil)
	if err := r.SetSecrets([]Secret{{Placeholder: stands, Value: "s3cr&t value", Hosts: []string{"example.com"}}}); err != nil {
		t.Fatal(err)
	}
	trusted := roots.Clone()
	if !trusted.AppendCertsFromPEM(a.Certificate()) {
		t.Fatal("the authority's certificate is none")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetHTTP2(http2)
	return r, r.client(t, tr), got
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body "+stands))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Key", "Bearer "+stands)
	req.SetBasicAuth("me", stands)
	return req
}

func TestSecretsReachTheirHost(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) { secretsReachTheirHost(t, false) })
	t.Run("HTTP/2.0", func(t *testing.T) { secretsReachTheirHost(t, true) })
}

func secretsReachTheirHost(t *testing.T, http2 bool) {
	proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
	r, c, got := secretRig(t, http2)
	for range 3 {
		a, err := c.Do(request(t, "https://example.com/x?a=%zz&key="+stands+"&b"))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if a.StatusCode != http.StatusOK || string(answer) != "thanks" || a.Proto != proto {
			t.Fatalf("got %s %s %q", a.Proto, a.Status, answer)
		}
		text := got.take()
		for _, want := range []string{
			" example.com /x?a=%zz&key=s3cr%26t+value&b ", "key=Bearer s3cr&t value ", "basic=me:s3cr&t value ", "q=s3cr&t value",
			" body " + stands + " ", // bodies are not touched
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %q", want, text)
			}
		}
	}
	if u := r.Usage(); u.Connections != 1 || u.Hosts[0] != "example.com" {
		t.Errorf("usage is %+v", u)
	}
	if err := r.SetSecrets(nil); err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(request(t, "https://example.com/"))
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if text := got.take(); strings.Contains(text, "s3cr") {
		t.Errorf("after it was taken away it was sent: %q", text)
	}
}

// A secret goes to its hosts alone: not to other hosts, not in clear, not to a
// server that is not certified, and not to a host named within the connection.
func TestSecretsReachNoOtherHost(t *testing.T) {
	r, c, got := secretRig(t, false)
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig.InsecureSkipVerify = true // it is the sandbox that does not care
	try := func(what string, req *http.Request, status int) {
		t.Helper()
		a, err := c.Do(req)
		if err == nil {
			a.Body.Close()
			if a.StatusCode != status {
				t.Errorf("%s is answered %s", what, a.Status)
			}
		}
		if text := got.take(); strings.Contains(text, "s3cr") {
			t.Errorf("%s was sent %q", what, text)
		}
	}
	try("another host", request(t, "https://other.test/"), http.StatusOK)
	try("a host below", request(t, "https://www.example.com/"), http.StatusOK)
	fronted := request(t, "https://example.com/")
	fronted.Host = "other.test"
	try("a host within", fronted, http.StatusForbidden)
	r.events.await(t, Event{Protocol: "http", Host: "other.test", Rule: RuleHTTPHost})

	r.zone.set("example.com", evil) // whose certificate is for the same names, by the same authority that no client trusts
	tr.CloseIdleConnections()
	r.names.mu.Lock()
	clear(r.names.byID)
	r.names.mu.Unlock()
	r.cfg.Roots = x509.NewCertPool
	a, err := c.Do(request(t, "https://example.com/"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if text, _ := io.ReadAll(a.Body); a.StatusCode != http.StatusBadGateway || !bytes.Contains(text, []byte("no certificate that is trusted")) {
		t.Errorf("a server that is not certified: %s %q", a.Status, text)
	}
	if text := got.take(); text != "" {
		t.Errorf("a server that is not certified was told %q", text)
	}
}

// Where connections need no name, secrets are still put in, and everything else
// passes as it is.
func TestSecretsUnrestricted(t *testing.T) {
	r, c, got := secretRig(t, true)
	if err := r.SetPolicy(*unrestricted); err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(request(t, "https://example.com/"))
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if text := got.take(); !strings.Contains(text, "key=Bearer s3cr&t value") {
		t.Errorf("the host was told %q", text)
	}
	other, err := r.dial("tcp", evil+":443")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn := tls.Client(other, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // any server will do
	if err := conn.HandshakeContext(context.Background()); err != nil {
		t.Errorf("TLS without a name: %v", err)
	}
}

func TestSetSecretsExplains(t *testing.T) {
	s := &Stack{cfg: Config{Authority: openAuthority(t)}}
	for want, secret := range map[string]Secret{
		"the placeholder of a secret": {Placeholder: "short", Value: "v", Hosts: []string{"a.test"}},
		"printable ASCII":             {Placeholder: stands, Value: "a\nb", Hosts: []string{"a.test"}},
		"needs the hosts":             {Placeholder: stands, Value: "v"},
		"to every host":               {Placeholder: stands, Value: "v", Hosts: []string{"*"}},
		"not a host name":             {Placeholder: stands, Value: "v", Hosts: []string{"a b"}},
	} {
		if err := s.SetSecrets([]Secret{secret}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s.cfg.Authority = nil
	if err := s.SetSecrets([]Secret{{Placeholder: stands, Value: "v", Hosts: []string{"a.test"}}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without an authority: %v", err)
	}
}

func TestAuthority(t *testing.T) {
	path := filepath.Join(t.TempDir(), "authority.pem")
	var all [8]*Authority
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			a, err := OpenAuthority(path)
			if err != nil {
				t.Error(err)
			}
			all[i] = a
		})
	}
	wg.Wait()
	for _, a := range all[1:] {
		if !bytes.Equal(a.Certificate(), all[0].Certificate()) {
			t.Error("there are two authorities")
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", st.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(path); err == nil {
		t.Error("a broken authority is taken")
	}
}

func FuzzRevealHeader(f *testing.F) {
	f.Add("Bearer "+stands, "v")
	f.Add("Basic bWU6YXRvbGxfcGxhY2Vob2xkZXJfMDEyMzQ1Njc4OQ==", "v")
	f.Fuzz(func(t *testing.T, header, value string) {
		got := revealHeader(header, strings.NewReplacer(stands, value))
		if !strings.Contains(header, stands) && !strings.EqualFold(header[:min(6, len(header))], "basic ") && got != header {
			t.Errorf("%q became %q", header, got)
		}
	})
}
