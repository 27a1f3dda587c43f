package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// insider asks a server for responses whose model runs what it is told to.
type insider struct {
	*testing.T
	server func() *atolltest.Server
	key    string
	model  string
	last   string // id of the last response
}

// newInsider makes a model of the provider that runs what it is told to.
func newInsider(t *testing.T, s *atolltest.Server, key, model string) *insider {
	t.Helper()
	addModel(t, s, model, obedient(t).URL)
	return &insider{t, func() *atolltest.Server { return s }, key, model, ""}
}

// told is what a response says of one call.
type told struct {
	ID, Status string
	Output     []struct {
		Type      string
		Execution string
		Results   []struct {
			Stdout, Stderr string
			ExitCode       int `json:"exit_code"`
		}
	}
	Usage struct {
		Details map[string]struct{ Invocation int } `json:"tool_calls_details"`
	}
}

func (r *told) stdout() string {
	for _, it := range r.Output {
		if it.Type == "sandbox_results" && len(it.Results) == 1 {
			return it.Results[0].Stdout + it.Results[0].Stderr
		}
	}
	return ""
}

// run runs code in a response; further ones continue it, in the same sandbox.
func (i *insider) run(code string) *told {
	i.Helper()
	r := &told{}
	q := map[string]any{"model": i.model, "input": "run " + code, "tools": []any{map[string]any{"type": "sandbox"}}}
	if i.last != "" {
		q["previous_response_id"] = i.last
	}
	i.server().Must(i.T, i.key, http.MethodPost, "/v1/responses", q).Into(i.T, http.StatusOK, r)
	if i.last = r.ID; r.Status != "completed" {
		i.Fatalf("the response is %+v", r)
	}
	return r
}

// TestCodeSearches: code of a response searches and reads pages in a sandbox without a
// network, in Python, in a shell and by plain HTTP, and each call is counted to it.
func TestCodeSearches(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "insider", "pro")
	i := newInsider(t, s, key, "inside")
	r := i.run(`
import atoll_web, os, socket
try: socket.create_connection(("1.1.1.1", 80), timeout=2); print("there is a network")
except OSError: pass
found = atoll_web.search("atolls", max_results=2)
both = atoll_web.search(["atolls", "reefs"], search_domain_filter=["example.org"])
page = atoll_web.fetch("` + searches.URL + `/page")
print(found[0]["title"], len({p["url"] for p in found + both}), page["text"], len(page["text"].split()))
try: atoll_web.search("x", search_mode="academic")
except atoll_web.Error as e: print(e.status, e.code)
open("token", "w").write(os.environ["ATOLL_WEB_TOKEN"])
`)
	if got := r.stdout(); got != "About atolls 4 Rings of coral. 3\n400 validation_error\n" {
		t.Errorf("got %s", got)
	}
	if d := r.Usage.Details; d["web_search"].Invocation != 2 || d["fetch_url"].Invocation != 1 || d["sandbox"].Invocation != 1 || len(d) != 3 {
		t.Errorf("counted %v", d)
	}
	r = i.run(`
import subprocess
def sh(command): print(subprocess.run(command, shell=True, capture_output=True, text=True).stdout.strip())
sh("atoll-web search -n 1 big atolls | jq -r '.[0].title'")
sh("atoll-web people who | jq -r '.[].title'")
sh("atoll-web fetch ` + searches.URL + `/page")
sh('''curl -s "$ATOLL_WEB_URL/search" -H "Authorization: Bearer $ATOLL_WEB_TOKEN" -H "Content-Type: application/json" -d '{"query":"reefs"}' | jq -r '.results[0].title' ''')
sh('''curl -s "$ATOLL_WEB_URL/search" -H "Authorization: Bearer $(cat token)" -H "Content-Type: application/json" -d '{"query":"reefs"}' | jq -r .error''')
sh('''curl -s "$ATOLL_WEB_URL/v1/executions" -H "Authorization: Bearer $ATOLL_WEB_TOKEN" | jq -r .error''')
sh("atoll-web fetch http://169.254.169.254/ 2>&1")
`)
	if got := r.stdout(); !strings.HasPrefix(got, "About big\nA person\nRings of coral.\nAbout reefs\nunauthorized\nnot_found\natoll-web: ") || !strings.Contains(got, "private") {
		t.Errorf("got %s", got)
	}
	if d := r.Usage.Details; d["web_search"].Invocation != 2 || d["fetch_url"].Invocation != 2 || d["people_search"].Invocation != 1 {
		t.Errorf("counted %v", d)
	}
	if calls := calls(t, s, key); calls["web_search"] != 4 || calls["fetch_url"] != 3 || calls["people_search"] != 1 || calls["response"] != 2 {
		t.Errorf("the ledger has %v", calls)
	}
	trail := string(s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/insider/audit", nil).Body)
	if strings.Count(trail, `"source":"web_search"`) != 4 || strings.Contains(trail, "reefs") {
		t.Errorf("the trail is %s", trail)
	}
	var list struct {
		Executions []struct {
			TraceID string `json:"trace_id"`
			Start   string
		}
	}
	s.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusOK, &list)
	for _, e := range list.Executions {
		if e.Start != "warm" || strings.Count(trail, e.TraceID) < 2 {
			t.Errorf("the execution %+v", e)
		}
	}
}

// TestCodeMayNotSearch: programs of a key that may not search get no address to search at, and
// its model gets no search tools.
func TestCodeMayNotSearch(t *testing.T) {
	s := shared(t)
	s.Tenant(t, "outsider", "pro")
	var made struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/tenants/outsider/keys", map[string]any{
		"name": "narrow", "environment": "main", "scopes": []string{"execute", "read"},
	}).Into(t, http.StatusCreated, &made)
	i := newInsider(t, s, made.Key, "outside")
	r := i.run(`
import atoll_web
try: atoll_web.search("atolls")
except atoll_web.Error as e: print(e.status, e)
`)
	if got := r.stdout(); !strings.HasPrefix(got, "0 there is no web for this program: ") || len(r.Usage.Details) != 1 {
		t.Errorf("got %s, %v", got, r.Usage.Details)
	}
}

// TestCodeFloods: connections without end, half requests and answers that are not read keep
// neither the program nor the server from going on.
func TestCodeFloods(t *testing.T) {
	s := shared(t)
	i := newInsider(t, s, s.Tenant(t, "flooder", "pro"), "flood")
	r := i.run(`
import atoll_web, os, socket
host, port = os.environ["ATOLL_WEB_URL"].removeprefix("http://").split(":")
head = b"POST /search HTTP/1.1\r\nAuthorization: Bearer " + os.environ["ATOLL_WEB_TOKEN"].encode() + b"\r\n"
def connect(): return socket.create_connection((host, int(port)), timeout=10)
held = []
for n in range(1000):
    c = socket.socket(); c.setblocking(False); c.connect_ex((host, int(port)))
    held.append(c)
    if n >= 300: held.pop(0).close()
for c in held:
    try: c.send(head[:20])
    except OSError: pass
for c in held: c.close()
print(len(atoll_web.search("after connections")))
for junk in b"\x00" * 100_000, b"A" * 100_000, head + b"X: " + b"y" * 1_000_000, head + b"Content-Length: 999999999\r\n\r\n" + b"z" * 1_000_000:
    c = connect()
    try: c.sendall(junk)
    except OSError: pass
    c.close()
unread = [connect() for _ in range(6)]
for c in unread: c.sendall(head + b"Content-Type: application/json\r\nContent-Length: 17\r\n\r\n" + b'{"query":"flood"}')
print(len(atoll_web.search("after junk")))
`)
	if got := r.stdout(); got != "3\n3\n" {
		t.Errorf("got %s", got)
	}
	if r = i.run("import atoll_web; print(len(atoll_web.search('later')))"); r.stdout() != "3\n" || r.Usage.Details["web_search"].Invocation != 1 {
		t.Errorf("got %s, %v", r.stdout(), r.Usage.Details)
	}
}

// calls are the calls of a key's tenant, by source.
func calls(t *testing.T, s *atolltest.Server, key string) map[string]int {
	t.Helper()
	var used struct {
		Days []struct {
			Source string
			Calls  int
		}
	}
	s.Must(t, key, http.MethodGet, "/v1/usage", nil).Into(t, http.StatusOK, &used)
	all := map[string]int{}
	for _, d := range used.Days {
		all[d.Source] += d.Calls
	}
	return all
}

// TestPublishedClientInside: the contract's own client works in the sandbox, without
// settings.
func TestPublishedClientInside(t *testing.T) {
	s := shared(t)
	i := newInsider(t, s, s.Tenant(t, "clientinside", "pro"), "client")
	version := strings.TrimSpace(i.run(`import sys; print("%d.%d" % sys.version_info[:2])`).stdout())
	packed := packages(t, version)
	const piece = 700_000
	for at := 0; at < len(packed); at += piece {
		i.run(fmt.Sprintf("import base64\nopen('p.tgz', 'ab').write(base64.b64decode('%s'))", base64.StdEncoding.EncodeToString(packed[at:min(at+piece, len(packed))])))
	}
	r := i.run(`
import subprocess, sys
subprocess.run(["tar", "xzf", "p.tgz"], check=True)
sys.path.insert(0, "packages")
import asyncio
from perplexity import AsyncPerplexity, Perplexity
found = Perplexity().search.create(query=["atolls", "reefs"], max_results=2)
print([r.title for r in found.results])
async def main():
    async with AsyncPerplexity() as client:
        return (await client.search.create(query="who", search_type="people")).results[0].title
print(asyncio.run(main()))
`)
	if got := r.stdout(); got != "['About atolls', 'About reefs']\nA person\n" {
		t.Errorf("got %s", got)
	}
	if d := r.Usage.Details; d["web_search"].Invocation != 1 || d["people_search"].Invocation != 1 {
		t.Errorf("counted %v", d)
	}
}

// packages is an archive of the contract's client for a version of Python.
func packages(t *testing.T, version string) []byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:", "--python-version", version, "--target", filepath.Join(dir, "packages")}
	for _, p := range pythonPackages {
		if strings.HasPrefix(p, "perplexityai==") {
			args = append(args, p)
		}
	}
	if out, err := atolltest.Output(exec.CommandContext(t.Context(), "python3", args...)); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "czf", filepath.Join(dir, "p.tgz"), "-C", dir, "packages").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	packed, err := os.ReadFile(filepath.Join(dir, "p.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// slowSearch is a search engine that says what it is asked, and answers nothing that begins
// with "slow".
func slowSearch(t *testing.T) (url string, asked <-chan string) {
	t.Helper()
	queries := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query().Get("q")
		queries <- q
		if strings.HasPrefix(q, "slow") {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"query":"","results":[{"title":"Found","url":"https://example.org/","content":"x"}],"unresponsive_engines":[]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, queries
}

// TestServerKilledWhileCodeSearches: the call that was under way is answered with an error,
// the program goes on with the next server, and what is counted is what was charged.
func TestServerKilledWhileCodeSearches(t *testing.T) {
	url, asked := slowSearch(t)
	line := newSuccession(t, "ATOLL_SEARCH_PROVIDER=searxng", "ATOLL_SEARCH_URL="+url, "ATOLL_MODEL_ALLOW=127.0.0.1")
	i := newInsider(t, line.now(), atolltest.Key, "killed")
	i.server = line.now
	q := map[string]any{"model": i.model, "background": true, "tools": []any{map[string]any{"type": "sandbox"}}, "input": `run 
import atoll_web, threading, time
print(len(atoll_web.search("first")))
try: atoll_web.search("slow")
except atoll_web.Error as e: print(e.status, e.code)
for _ in range(100):
    try: print(atoll_web.search("last")[0]["title"]); break
    except atoll_web.Error as e: time.sleep(0.1)
`}
	var r told
	line.now().Must(t, i.key, http.MethodPost, "/v1/responses", q).Into(t, http.StatusOK, &r)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for q := ""; !strings.HasPrefix(q, "slow"); {
		select {
		case q = <-asked:
		case <-ctx.Done():
			t.Fatalf("nothing is searched for\n%s", line.now().Log())
		}
	}
	line.next(syscall.SIGKILL)
	for r.Status == "in_progress" || r.Status == "queued" {
		a, err := line.now().Call(ctx, i.key, http.MethodGet, "/v1/responses/"+r.ID, nil, nil)
		if err == nil && a.Status == http.StatusOK {
			if err := json.Unmarshal(a.Body, &r); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-time.After(100 * time.Millisecond): // a poll, as clients do
		case <-ctx.Done():
			t.Fatalf("the response has not ended: %+v\n%s", r, line.now().Log())
		}
	}
	if got := r.stdout(); got != "1\n502 bad_gateway\nFound\n" {
		t.Errorf("got %s of %+v", got, r)
	}
	if used := calls(t, line.now(), i.key); r.Usage.Details["web_search"].Invocation != used["web_search"] || used["web_search"] != 2 {
		t.Errorf("counted %v, charged %v", r.Usage.Details, used)
	}
}
