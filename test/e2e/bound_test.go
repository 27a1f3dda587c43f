package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// hostsOfSecrets is a server of HTTPS, api.example.com and others.
type hostsOfSecrets struct {
	address string
	port    string
	options atolltest.Options // of a server whose sandboxes reach it

	mu   sync.Mutex
	told []string // host and Authorization of each request
	stop bool     // what it answers; guarded by mu
}

func (h *hostsOfSecrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, _, _ := net.SplitHostPort(r.Host)
	h.told = append(h.told, name+" "+r.Header.Get("Authorization"))
	switch {
	case r.URL.Path == "/echo":
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	case h.stop:
		_, _ = io.WriteString(w, "stop")
	}
}

func (h *hostsOfSecrets) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := h.told
	h.told = nil
	return told
}

func startHosts(t *testing.T) *hostsOfSecrets {
	t.Helper()
	h := &hostsOfSecrets{}
	hosts := httptest.NewUnstartedServer(h)
	at := serve(t, func(net.Conn) {}) // finds an address that sandboxes can be let reach
	address, _, _ := net.SplitHostPort(at)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	_ = hosts.Listener.Close()
	hosts.Listener, hosts.EnableHTTP2 = l, true
	hosts.StartTLS()
	t.Cleanup(hosts.Close)
	h.address, h.port, _ = net.SplitHostPort(l.Addr().String())
	dir := t.TempDir()
	names, ca := filepath.Join(dir, "hosts"), filepath.Join(dir, "ca.pem")
	for path, text := range map[string]string{
		names: address + " api.example.com other.example.com key.example.com\n",
		ca:    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hosts.Certificate().Raw})),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h.options = atolltest.Options{Hosts: names, Env: []string{"ATOLL_NETWORK_ALLOW=" + l.Addr().String(), "ATOLL_SANDBOX_CA_BUNDLE=" + ca}}
	return h
}

// TestBoundSecrets has programs of a server use secrets that they do not have:
// one of the environment, and one of the key.
func TestBoundSecrets(t *testing.T) {
	const ofEnv, ofKey = "environment-secret-0123456789", "key-secret-0123456789"
	h := startHosts(t)
	s := atolltest.Start(t, h.options)
	key := networked(t, s, "bound", map[string]any{"enabled": true, "allowed_hosts": []string{"*.example.com"}, "allowed_cidrs": []string{h.address + "/32"}})
	admin, base := s.AdminKey(t), "/v1/admin/tenants/bound"
	s.Must(t, admin, http.MethodPatch, base+"/environments/main", map[string]any{
		"secrets": map[string]any{"TOKEN": ofEnv}, "secret_hosts": map[string]any{"TOKEN": []string{"api.example.com"}},
	}).Into(t, http.StatusOK, nil)
	var keys struct {
		Data []struct{ Name string } `json:"data"`
	}
	s.Must(t, admin, http.MethodGet, base+"/keys", nil).Into(t, http.StatusOK, &keys)
	s.Must(t, admin, http.MethodPatch, base+"/keys/"+keys.Data[0].Name, map[string]any{
		"secrets": map[string]any{"KEY_TOKEN": ofKey}, "secret_hosts": map[string]any{"KEY_TOKEN": []string{"key.example.com"}},
	}).Into(t, http.StatusOK, nil)

	ask := func(t *testing.T, language, code string) (*atolltest.Result, []string) {
		t.Helper()
		r := ask(t, s, key, language, strings.ReplaceAll(code, "PORT", h.port))
		if r.ExitCode != 0 || strings.Contains(r.Stdout+r.Stderr, ofEnv) || strings.Contains(r.Stdout+r.Stderr, ofKey) {
			t.Errorf("got %v", r)
		}
		return r, h.take()
	}
	for _, c := range []struct{ name, language, code string }{
		{"Python", atolltest.Python, `import os, urllib.request as u
for h, n in ('api', 'TOKEN'), ('other', 'TOKEN'), ('key', 'KEY_TOKEN'), ('api', 'KEY_TOKEN'):
    u.urlopen(u.Request(f'https://{h}.example.com:PORT/', headers={'Authorization': os.environ[n]})).read()
print(os.environ['TOKEN'], os.environ['KEY_TOKEN'], open('/proc/self/environ').read())`},
		{"curl", atolltest.Bash, `for p in --http1.1 --http2; do
curl -fsS $p -H "Authorization: $TOKEN" https://api.example.com:PORT/
curl -fsS $p -H "Authorization: $TOKEN" https://other.example.com:PORT/
curl -fsS $p -H "Authorization: $KEY_TOKEN" https://key.example.com:PORT/
curl -fsS $p -H "Authorization: $KEY_TOKEN" https://api.example.com:PORT/
done; echo "$TOKEN $KEY_TOKEN"; env; cat /proc/self/environ /proc/$$/environ`},
		{"Node", atolltest.Node, `(async () => {
for (const [h, n] of [['api', 'TOKEN'], ['other', 'TOKEN'], ['key', 'KEY_TOKEN'], ['api', 'KEY_TOKEN']])
  await (await fetch('https://' + h + '.example.com:PORT/', {headers: {authorization: process.env[n]}})).text();
console.log(process.env.TOKEN, process.env.KEY_TOKEN, require('fs').readFileSync('/proc/self/environ', 'latin1'));
})()`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, was := ask(t, c.language, c.code)
			var envHas, keyHas string
			if _, err := fmt.Sscan(r.Stdout, &envHas, &keyHas); err != nil || !strings.HasPrefix(envHas, "atoll-bound-") || !strings.HasPrefix(keyHas, "atoll-bound-") || envHas == keyHas {
				t.Fatalf("the program has %q and %q: %v", envHas, keyHas, r)
			}
			want := []string{"api.example.com " + ofEnv, "other.example.com " + envHas, "key.example.com " + ofKey, "api.example.com " + keyHas}
			if c.name == "curl" {
				want = append(want, want...)
			}
			if strings.Join(was, "\n") != strings.Join(want, "\n") {
				t.Errorf("the hosts were told %q, want %q", was, want)
			}
		})
	}

	// A host that sends it back: what is printed of it is covered.
	r, was := ask(t, atolltest.Bash, `curl -fsS -H "Authorization: $TOKEN" https://api.example.com:PORT/echo`)
	if len(was) != 1 || !strings.Contains(was[0], ofEnv) || r.Stdout != "[redacted]" {
		t.Errorf("a host that sends it back: %q, %v", was, r)
	}
	if st, err := os.Stat(filepath.Join(s.Data, "authority.pem")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the authority's file: %v, %v", st, err)
	}
}

// TestABrokenAuthorityRefuses starts a server whose authority cannot be read:
// what has bound secrets is refused, everything else runs.
func TestABrokenAuthorityRefuses(t *testing.T) {
	first := atolltest.Start(t, atolltest.Options{})
	key := networked(t, first, "broken", map[string]any{"enabled": true, "allowed_hosts": []string{"*.example.com"}})
	first.Must(t, first.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/broken/environments/main", map[string]any{
		"secrets": map[string]any{"TOKEN": "a-secret-0123"}, "secret_hosts": map[string]any{"TOKEN": []string{"api.example.com"}},
	}).Into(t, http.StatusOK, nil)
	data := first.Keep(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "authority.pem"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := atolltest.Start(t, atolltest.Options{Data: data})
	a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": atolltest.Bash, "code": "echo $TOKEN"})
	if a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), "certificate authority") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	if r := s.Run(t, atolltest.Program{Language: atolltest.Bash, Code: "echo here"}); r.Stdout != "here\n" {
		t.Errorf("what has no bound secrets: %v", r)
	}
}

// TestBoundSecretsSurviveTheirServer kills a server under a program that uses a
// secret again and again: the next one puts it into the requests that follow.
func TestBoundSecretsSurviveTheirServer(t *testing.T) {
	h := startHosts(t)
	h.options.Env = append(h.options.Env, "ATOLL_ON_EXIT=detach")
	s := atolltest.Start(t, h.options)
	key := networked(t, s, "survivor", map[string]any{"enabled": true, "allowed_hosts": []string{"*.example.com"}, "allowed_cidrs": []string{h.address + "/32"}})
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/survivor/environments/main", map[string]any{
		"secrets": map[string]any{"TOKEN": "a-secret-0123"}, "secret_hosts": map[string]any{"TOKEN": []string{"api.example.com"}},
	}).Into(t, http.StatusOK, nil)
	go func() { // its answer is cut
		_, _ = s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": atolltest.Bash, "timeout": 120, "code": fmt.Sprintf(
			`until [ "$(curl -sS --max-time 5 -H "Authorization: $TOKEN" https://api.example.com:%s/)" = stop ]; do sleep 0.1; done; echo stopped`, h.port)}, nil)
	}()
	told := func() bool { return slices.Contains(h.take(), "api.example.com a-secret-0123") }
	atolltest.Until(t, time.Minute, "a request with the secret", told)
	h.options.Data = s.Keep(t)
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait(context.Background())
	h.take()
	next := atolltest.Start(t, h.options)
	atolltest.Until(t, time.Minute, "a request with the secret after the take-over", told)
	h.mu.Lock()
	h.stop = true
	h.mu.Unlock()
	atolltest.Until(t, time.Minute, "the program's end", func() bool {
		var page struct {
			Data []struct {
				Status string `json:"status"`
			} `json:"data"`
		}
		next.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusOK, &page)
		return len(page.Data) == 1 && page.Data[0].Status == "success"
	})
}
