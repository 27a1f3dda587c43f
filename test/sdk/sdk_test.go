package sdk

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

var server = atolltest.Shared{Options: atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=2", "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_CORS_ORIGINS=" + pageOrigin}}}

func TestMain(m *testing.M) { server.Main(m) }

// model is the name of the scripted model.
const model = "scripted"

// arranged is the server with the tenants, keys and model that scenarios suppose, for all tests.
func arranged(t *testing.T) *place {
	t.Helper()
	s := server.Get(t)
	once.Do(func() { shared = arrange(t, s) })
	if shared == nil {
		t.Fatal("the server was not arranged")
	}
	return shared
}

var (
	once   sync.Once
	shared *place
)

func arrange(t *testing.T, s *atolltest.Server) *place {
	t.Helper()
	folder, err := filepath.Abs(scenariosDir)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{url: s.URL, model: model, folder: folder, keys: map[string]string{"admin": s.AdminKey(t)}}
	p.keys["default"], p.keys["other"] = tenant(t, s, "scenarios"), tenant(t, s, "other")
	says := httptest.NewServer(provider()) // these two end with the process, as the server does
	s.Must(t, p.keys["admin"], http.MethodPost, "/v1/admin/models", map[string]any{
		"name": model, "provider": "openai", "base_url": says.URL + "/v1", "prices": map[string]any{"input": "1", "output": "10"},
	}).Into(t, http.StatusCreated, nil)
	way := httptest.NewServer(newTrouble(s.URL))
	p.trouble = way.URL
	return p
}

// tenant makes a tenant that may do what scenarios do, and a key of it.
func tenant(t *testing.T, s *atolltest.Server, name string) string {
	t.Helper()
	admin, base := s.AdminKey(t), "/v1/admin/tenants/"+name
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants", map[string]any{"name": name, "plan": "enterprise", "network_enabled": true}).Into(t, http.StatusCreated, nil)
	s.Must(t, admin, http.MethodPost, base+"/environments", map[string]any{"name": "main", "image": atolltest.Image}).Into(t, http.StatusCreated, nil)
	for _, of := range []string{"default", "default-public"} {
		s.Must(t, admin, http.MethodPut, base+"/templates/"+of, map[string]any{"sandbox": map[string]any{"environment": "default-public"}}).Into(t, http.StatusOK, nil)
	}
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{
		"name": "main", "environment": "main", "scopes": []string{"execute", "read", "tools", "sandboxes", "environments"},
	}).Into(t, http.StatusCreated, &made)
	return made.Key
}

// sideBySide is how many scenarios of the Go library run at a time.
const sideBySide = 4

// scenarioTime bounds one scenario.
const scenarioTime = 2 * time.Minute

// TestScenarios runs every scenario with every library.
func TestScenarios(t *testing.T) {
	all, names, err := load()
	if err != nil {
		t.Fatal(err)
	}
	p := arranged(t)
	for _, l := range libraries {
		if _, err := os.Stat(l.runner); err != nil {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			cmd, err := l.command(t.Context(), p.folder, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(append(p.environment(), "ATOLL_SCENARIO="+l.only), cmd.Env...)
			reports, wrong := told(cmd, matching(all, l.only))
			for _, r := range reports {
				t.Logf("%s (%.0f ms) %v", r.Name, r.MS, r.OK)
			}
			for _, why := range wrong {
				t.Error(why)
			}
		})
	}
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		for name := range names {
			if _, once := calls[name]; !once && streams[name] == nil {
				t.Errorf("the library's runner lacks %s", name)
			}
		}
		turns := make(chan struct{}, sideBySide)
		var over sync.WaitGroup
		for _, s := range all {
			over.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				ctx, cancel := context.WithTimeout(t.Context(), scenarioTime)
				defer cancel()
				begun := time.Now()
				why := p.run(ctx, s)
				took := time.Since(begun).Round(time.Millisecond)
				if why != "" {
					t.Errorf("%s (%s): %s", s.Name, took, why)
				} else {
					t.Logf("%s (%s)", s.Name, took)
				}
			})
		}
		over.Wait()
	})
}

// matching are the scenarios whose name matches a regular expression.
func matching(all []scenario, expression string) []scenario {
	of := regexp.MustCompile(expression)
	return slices.DeleteFunc(slices.Clone(all), func(s scenario) bool { return !of.MatchString(s.Name) })
}

// TestProgram shows what is said of a program that fails some scenarios, leaves others out, and
// says something else.
func TestProgram(t *testing.T) {
	all := []scenario{{Name: "a/good"}, {Name: "a/bad"}, {Name: "a/none"}}
	reports, wrong := told(exec.CommandContext(t.Context(), "sh", "-c", `
		echo '{"name": "a/good", "ok": true, "why": "", "ms": 1}'
		echo '{"name": "a/bad", "ok": false, "why": "step 1", "ms": 2}'
		echo '{"name": "b/other", "ok": true}'
		echo trace >&2
		exit 3`), all)
	text := strings.Join(wrong, "\n")
	if len(reports) != 2 || len(wrong) != 4 {
		t.Errorf("%+v\n%s", reports, text)
	}
	for _, want := range []string{"a/bad (2 ms): step 1", "b/other", "a/none: it was not run", "exit status 3: trace"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if _, wrong := told(exec.CommandContext(t.Context(), "sh", "-c", `echo '{"name": "a/good", "ok": true}'`), all[:1]); len(wrong) != 0 {
		t.Errorf("a program that does all says %v", wrong)
	}
}

// TestCalls compares the names of calls with the scenarios and with the interface.
func TestCalls(t *testing.T) {
	all, names, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			Operation string `json:"operationId"`
		}
	}
	if err := decodeLoose("../../api/openapi.json", &document); err != nil {
		t.Fatal(err)
	}
	operations, called, left := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, methods := range document.Paths {
		for _, o := range methods {
			operations[o.Operation], left[o.Operation] = true, true
		}
	}
	for name, call := range names {
		if call.Operation != "" && !operations[call.Operation] {
			t.Errorf("%s is of the operation %q, which there is not", name, call.Operation)
		}
		delete(left, call.Operation)
		if !slices.Contains([]string{"json", "none", "list", "bytes", "stream"}, call.Answer) {
			t.Errorf("%s answers %q", name, call.Answer)
		}
	}
	for o := range left {
		if !unnamed(o) {
			t.Errorf("no call is of the operation %s", o)
		}
	}
	for _, s := range all {
		for i, st := range s.Steps {
			name, _ := st["call"].(string)
			called[name] = true
			if _, ok := names[name]; !ok && st["join"] == nil {
				t.Errorf("%s, step %d: calls.json has no %q", s.Name, i, name)
			}
		}
	}
	for name := range names {
		if !called[name] && !slices.Contains(uncalled, name) {
			t.Errorf("no scenario calls %s", name)
		}
	}
}

// uncalled are calls that need what scenarios do not have, or change what they share: files that
// a model shares, hand-offs, a search engine, orphans, receivers of webhooks, the caps.
var uncalled = []string{
	"admin.caps.change", "admin.orphans.reap", "admin.webhooks.redeliver", "responses.file", "sessions.file",
	"sessions.thread", "sessions.thread_events", "sessions.thread_follow", "web.fetch", "web.search",
}

// unnamed reports whether an operation is none of the libraries': one of other clients' contracts,
// of monitoring, or another path of one that has a name.
func unnamed(operation string) bool {
	return strings.HasSuffix(operation, "Default") || strings.Contains(operation, "AgentResponse") || strings.HasPrefix(operation, "mcp") ||
		slices.Contains([]string{"getHealth", "getReady", "getMetrics", "searchOfContract"}, operation)
}

// TestMatch shows what matchers say.
func TestMatch(t *testing.T) {
	object := map[string]any{"a": "text", "n": 2.0, "list": []any{"x", map[string]any{"y": 1.0}}, "null": nil}
	for _, c := range []struct {
		want any
		ok   bool
	}{
		{map[string]any{"a": "text"}, true},
		{map[string]any{"a": "other"}, false},
		{map[string]any{"none": nil}, false},
		{map[string]any{"none": map[string]any{"$any": true}}, true},
		{map[string]any{"null": nil}, true},
		{map[string]any{"a": map[string]any{"$match": "^te"}}, true},
		{map[string]any{"a": map[string]any{"$match": "^x"}}, false},
		{map[string]any{"a": map[string]any{"$contains": "ex"}, "n": map[string]any{"$type": "number"}}, true},
		{map[string]any{"list": map[string]any{"$length": 2.0}}, true},
		{map[string]any{"list": map[string]any{"$length": 1.0}}, false},
		{map[string]any{"list": map[string]any{"$contains": map[string]any{"y": 1.0}}}, true},
		{map[string]any{"list": []any{"x"}}, false},
		{map[string]any{"list": []any{"x", map[string]any{}}}, true},
		{map[string]any{"list": map[string]any{"$each": map[string]any{"$type": "string"}}}, false},
		{map[string]any{"n": map[string]any{"$wrong": true}}, false},
	} {
		if why := match(c.want, object); (why == "") != c.ok {
			t.Errorf("%s: %q", short(c.want), why)
		}
	}
	events := []any{map[string]any{"n": 1.0}, map[string]any{"n": 2.0}, map[string]any{"n": 3.0}}
	if why := matchStream([]any{map[string]any{"n": 1.0}, map[string]any{"n": 3.0}}, events, false); why != "" {
		t.Error(why)
	}
	if matchStream([]any{map[string]any{"n": 3.0}, map[string]any{"n": 1.0}}, events, false) == "" || matchStream(events[:2], events, true) == "" {
		t.Error("events in another order, or with others, match")
	}
	if v, err := fill("a ${x} b", map[string]any{"x": 1.5}); err != nil || fmt.Sprint(v) != "a 1.5 b" {
		t.Error(v, err)
	}
	if v, err := fill([]any{"${x}"}, map[string]any{"x": 1.5}); err != nil || short(v) != "[1.5]" {
		t.Error(v, err)
	}
	if _, err := fill("${y}", nil); err == nil {
		t.Error("a name that there is not is filled in")
	}
}
