package service

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// Versions of what is installed from npm: the protocol's own suite for servers, and
// a Node.js that it runs with, which is newer than Debian's.
const (
	mcpConformance = "@modelcontextprotocol/conformance@0.1.16"
	nodeForIt      = "@22.23.3"
)

var (
	conformanceNode   = "node-linux-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	conformanceSuite  = []string{mcpConformance, conformanceNode + nodeForIt}
	conformanceFolder = installed("conformance", conformanceSuite, npmInstall(conformanceSuite))
)

// TestMCPConformance runs those scenarios of the protocol's conformance suite that
// any server with tools has to pass. The others call tools, prompts and resources of
// the suite's own example server.
func TestMCPConformance(t *testing.T) {
	s := shared(t)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	// The suite sends no key. Everything else arrives as it was sent.
	proxy := &httputil.ReverseProxy{Transport: keyed{}, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise Go closes the request's body with the answer's first byte. The
		// proxy may yet have to read its end, and gives the answer up if it cannot.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	dir, err := conformanceFolder()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{
		"server-initialize", "logging-set-level", "ping", "tools-list", "resources-list", "prompts-list",
		"server-sse-multiple-streams", "dns-rebinding-protection",
	} {
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", conformanceNode, "bin/node"),
				filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", front.URL+"/mcp", "--scenario", scenario)
			cmd.Dir = dir
			if out, err := atolltest.Output(cmd); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
