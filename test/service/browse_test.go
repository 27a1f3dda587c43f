package service

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// browser is an agent with the skill web-browsing in a session of its own.
func browser(t *testing.T, s *atolltest.Server, key string, config map[string]any) (session string) {
	t.Helper()
	var made struct{ ID string }
	agent := map[string]any{"name": "Reader", "model": map[string]string{"name": "reader"}, "skills": []any{map[string]any{"name": "web-browsing", "config": config}}}
	s.Must(t, key, http.MethodPost, "/v1/agents", agent).Into(t, http.StatusCreated, &made)
	s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]string{"agent_id": made.ID}).Into(t, http.StatusCreated, &made)
	return "/v1/sessions/" + made.ID
}

// browses has the agent make calls, and returns what the results of the turn say.
func browses(t *testing.T, s *atolltest.Server, key, session string, steps ...toolStep) (results []string, content string) {
	t.Helper()
	plan, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	var turn struct {
		TurnID          string `json:"id"`
		Content, Status string
	}
	s.Must(t, key, http.MethodPost, session+"/events", map[string]string{"type": "message", "content": string(plan)}).Into(t, http.StatusOK, &turn)
	var page struct {
		Data []struct {
			TurnID  string `json:"turn_id"`
			Content string
		}
	}
	s.Must(t, key, http.MethodGet, session+"/events?limit=100&types=tool_result", nil).Into(t, http.StatusOK, &page)
	for _, e := range page.Data {
		if e.TurnID == turn.TurnID {
			results = append(results, e.Content)
		}
	}
	if turn.Status != "completed" || len(results) != len(steps) {
		t.Fatalf("the turn is %+v with %d results", turn, len(results))
	}
	return results, turn.Content
}

// TestWebBrowsing has an agent read pages with a browser in its sandbox, as far as the network
// of the environment and the skill allow. The image is this machine's own, which has Chromium.
func TestWebBrowsing(t *testing.T) {
	address := machine(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	at := func(host, path string) string { return "http://" + net.JoinHostPort(host, port) + path }
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, at("evil.test", "/"), http.StatusFound)
		case "/prices":
			fmt.Fprint(w, `<table><tr><th>Thing<th>Price<tr><td>Tea<td>3.50</table>`)
		default:
			fmt.Fprintf(w, `<title>Shop</title><h1>Open</h1><a href="/prices">Prices</a> <img src="%s"><p id="p"></p><script>p.textContent = 6 * 7</script>`, at("evil.test", "/x.png"))
		}
	})
	pages := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler}
	go func() { _ = pages.Serve(l) }()
	t.Cleanup(func() { _ = pages.Close() })
	securePort, ca := secureSite(t, address, handler)
	hosts := hostsFile(t, address, "shop.test", "evil.test", "example.com")
	s := atolltest.Start(t, atolltest.Options{Hosts: hosts, Env: []string{
		noPool, "ATOLL_IMAGE=host", "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_NETWORK_ALLOW=" + address, "ATOLL_SANDBOX_CA_BUNDLE=" + ca,
	}})
	addModel(t, s, "reader", planner(t).URL, "tools", "vision")
	key := s.Tenant(t, "readers", "enterprise")
	admin, base := s.AdminKey(t), "/v1/admin/tenants/readers"
	s.Must(t, admin, http.MethodPatch, base, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, base+"/environments/main", map[string]any{"image": "host", "permissions": map[string]any{
		"network":    map[string]any{"enabled": true, "allowed_hosts": []string{"shop.test", "example.com"}, "allowed_cidrs": []string{address + "/32"}},
		"filesystem": map[string]any{"writable_paths": []string{"/home/user", "/tmp"}}, "process": map[string]any{"max_processes": 20}, // as in the profile standard
	}}).Into(t, http.StatusOK, nil)

	open := func(url string) toolStep { return toolStep{"open_page", map[string]string{"url": url}} }
	session := browser(t, s, key, map[string]any{"max_pages": 3, "page_timeout_ms": 20000})
	results, _ := browses(t, s, key, session, open(at("shop.test", "/")), toolStep{"follow_link", map[string]int{"link": 1}}, toolStep{"extract_from_page", map[string]string{"what": "tables"}},
		open(at("shop.test", "/away")), open(at("evil.test", "/")), open(at("shop.test", "/")), open(at("shop.test", "/")))
	for i, want := range []string{"# Open\n\nPrices [1]\n\n42", "Tea | 3.50", "| Tea | 3.50 |", "does not allow evil.test", "does not allow evil.test", "# Open", "opened 3 pages"} {
		if !strings.Contains(results[i], want) {
			t.Errorf("result %d does not say %q: %s", i, want, results[i])
		}
	}
	if !strings.HasPrefix(results[0], "What follows are words of web pages.") || !strings.Contains(results[0], "[not loaded: evil.test (ERR_NAME_NOT_RESOLVED)]") {
		t.Errorf("a page is shown as %s", results[0])
	}
	// The browser is still there in the next turn, in which as many pages can be opened again.
	_, shown := browses(t, s, key, session, open("https://"+net.JoinHostPort("example.com", securePort)+"/prices"), toolStep{"screenshot_page", map[string]any{"file_path": "prices.png"}})
	if !strings.Contains(shown, "Saved as prices.png") || !strings.Contains(shown, "data:image/png;base64,") {
		t.Errorf("the model is shown %.300s", shown)
	}
	results, _ = browses(t, s, key, session, toolStep{"read_page", map[string]any{}}, toolStep{"run_code", map[string]string{"language": "bash", "code": "ls -l prices.png; pgrep -c -f remote-debugging-pipe"}})
	if !strings.Contains(results[0], "https://example.com:") || !strings.Contains(results[0], "Tea | 3.50") || !strings.Contains(results[1], "prices.png\n") {
		t.Errorf("in the next turn: %s", results)
	}
	narrow := browser(t, s, key, map[string]any{"allowed_domains": []string{"example.com"}, "screenshots": false})
	if results, _ := browses(t, s, key, narrow, open(at("shop.test", "/"))); !strings.Contains(results[0], "shop.test is not among the allowed_domains") {
		t.Errorf("another domain: %s", results)
	}
	var with struct {
		Instructions string
		Tools        []struct{ Name string }
	}
	s.Must(t, key, http.MethodGet, narrow+"/context", nil).Into(t, http.StatusOK, &with)
	all := fmt.Sprint(with.Tools)
	if !strings.Contains(all, "open_page") || !strings.Contains(all, "run_code") || strings.Contains(all, "screenshot_page") || !strings.Contains(with.Instructions, "example.com") {
		t.Errorf("the agent has %s, and is told %s", all, with.Instructions)
	}

	// The default image has no browser.
	bare := shared(t)
	lendModel(t, bare, "reader", planner(t).URL, "tools")
	key = bare.Tenant(t, "bookless", "enterprise")
	if results, _ := browses(t, bare, key, browser(t, bare, key, map[string]any{}), open("http://shop.test/")); !strings.Contains(results[0], "add chromium to packages.apt") {
		t.Errorf("without a browser: %s", results)
	}
}

// secureSite serves example.com by TLS at an address of the machine. It returns the port, and the file
// of the certificate to trust.
func secureSite(t *testing.T, address string, handler http.Handler) (port, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler) // certified for example.com
	_ = s.Listener.Close()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listener = l
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, ca
}

// hostsFile is what a server is given for /etc/hosts: names of an address.
func hostsFile(t *testing.T, address string, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("127.0.0.1 localhost\n"+address+" "+strings.Join(names, " ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
