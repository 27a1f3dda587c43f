package e2e

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// backend serves the front end's build, and an answer of its own.
const backend = `from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

app = FastAPI()

@app.get("/api/sum")
def total(a: int, b: int):
    return {"sum": a + b}

app.mount("/", StaticFiles(directory="static", html=True))
`

// TestWorkflow is the contract's example, call by call: a front end built in one
// sandbox, a back end in another that serves it, and the page looked at.
func TestWorkflow(t *testing.T) {
	server := atolltest.Start(t, atolltest.Options{Env: []string{
		"ATOLL_SANDBOX_CA_BUNDLE=" + machineCA(t), "ATOLL_PIP_INDEX=" + pipIndex(t), "ATOLL_NPM_REGISTRY=" + npmRegistry(t), "ATOLL_MAX_TIMEOUT=1h",
	}})
	key := networked(t, server, "workflow", map[string]any{"enabled": true, "allowed_hosts": []string{}})
	s := newSession(t, server, key, "combine")

	s.tool("sandbox_create", object{"sandbox": "frontend", "image": "node:18"}, http.StatusOK)
	s.tool("sandbox_create", object{"sandbox": "backend", "image": "python:3"}, http.StatusOK)
	run := func(sandbox, command string) {
		t.Helper()
		out := s.tool("shell", object{"sandbox": sandbox, "command": command, "timeout_ms": 600_000}, http.StatusOK)
		if out["exit_code"] != 0.0 {
			t.Fatalf("%s: %v", command, out)
		}
	}
	run("frontend", "npm create vite@5 app -- --template react && cd app && npm install && npm run build")
	run("backend", "pip install fastapi uvicorn && mkdir app")
	s.tool("write_file", object{"sandbox": "backend", "path": "/home/user/app/main.py", "content": backend}, http.StatusOK)
	moved := s.tool("transfer", object{"from_sandbox": "frontend", "from_path": "/home/user/app/dist", "to_sandbox": "backend", "to_path": "/home/user/app/static", "recursive": true}, http.StatusOK)
	if moved["bytes"].(float64) < 100_000 { // React alone is more
		t.Errorf("transfer: %v", moved)
	}
	run("backend", "cd /home/user/app && uvicorn main:app --host 0.0.0.0 --port 8000 &")
	page, err := url.Parse(s.tool("browse", object{"sandbox": "backend", "port": 8000}, http.StatusOK)["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = page.Host // browsers know where *.localhost is
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	// The server was started in the background: it needs a moment to listen.
	var html string
	atolltest.Until(t, time.Minute, "the page is there", func() (there bool) {
		var status int
		status, html = get("/")
		return status == http.StatusOK
	})
	script := regexp.MustCompile(`/assets/[^"]+\.js`).FindString(html)
	if script == "" {
		t.Fatal(html)
	}
	if status, js := get(script); status != http.StatusOK || !strings.Contains(js, "Vite + React") {
		t.Errorf("HTTP %d, %d bytes of script", status, len(js))
	}
	if status, got := get("/api/sum?a=20&b=22"); status != http.StatusOK || got != `{"sum":42}` {
		t.Errorf("HTTP %d: %s", status, got)
	}
}
