package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestContextsOfASession runs code in contexts of a sandbox that is named within
// its session.
func TestContextsOfASession(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, "contexts")
	s.shell("true")
	post := func(path string, in any, status int) (out map[string]any) {
		t.Helper()
		s.Must(t, s.key, http.MethodPost, "/v1/sandboxes/default/contexts"+path+"?session=contexts", in).Into(t, status, &out)
		return out
	}
	value := func(out map[string]any) string {
		t.Helper()
		values, _ := out["values"].([]any)
		if out["status"] != "ok" || len(values) == 0 {
			t.Fatalf("got %v", out)
		}
		data := values[len(values)-1].(map[string]any)["data"].(map[string]any)
		return data["text/plain"].(string)
	}
	post("/python/run", object{"code": "x = 41"}, http.StatusOK)
	if got := value(post("/python/run", object{"code": "x + 1"}, http.StatusOK)); got != "42" {
		t.Errorf("Python: %s", got)
	}
	post("/node/run", object{"code": "const y = await Promise.resolve([1, 2])"}, http.StatusOK)
	if got := value(post("/node/run", object{"code": "y"}, http.StatusOK)); got != "[ 1, 2 ]" {
		t.Errorf("Node.js: %s", got)
	}
	post("/bash/run", object{"code": "cd /tmp; z=7"}, http.StatusOK)
	if got := post("/bash/run", object{"code": "echo $z $PWD; false"}, http.StatusOK); got["stdout"] != "7 /tmp\n" || got["exit_code"] != 1.0 {
		t.Errorf("Bash: %v", got)
	}
	frame := post("/python/run", object{"code": "import pandas\npandas.DataFrame({'a': [1, 2]})"}, http.StatusOK)["values"].([]any)[0].(map[string]any)["data"].(map[string]any)
	if html, _ := frame["text/html"].(string); !strings.Contains(html, "<table") {
		t.Errorf("a data frame is %v", frame)
	}
	figure := post("/python/run", object{"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2]);", "timeout_ms": 120_000}, http.StatusOK)["values"].([]any)
	if png, _ := figure[len(figure)-1].(map[string]any)["data"].(map[string]any)["image/png"].(string); !strings.HasPrefix(png, "iVBORw0KGgo") {
		t.Errorf("a figure is %.100v", figure)
	}
	failed := post("/python/run", object{"code": "def f():\n    1 / 0\nf()"}, http.StatusOK)
	if e, _ := failed["error"].(map[string]any); failed["status"] != "error" || e["name"] != "ZeroDivisionError" {
		t.Errorf("got %v", failed)
	}

	// One that would never end is interrupted, and keeps what it has.
	over := make(chan map[string]any)
	go func() {
		over <- post("/python/run", object{"code": "open('/tmp/began', 'w').close()\nwhile True: pass", "timeout_ms": 60_000}, http.StatusOK)
	}()
	atolltest.Until(t, time.Minute, "the code has begun", func() bool { return s.shell("ls /tmp") != "" && strings.Contains(s.shell("ls /tmp"), "began") })
	post("/python/run", object{"code": "1"}, http.StatusConflict)
	s.Must(t, s.key, http.MethodPost, "/v1/sandboxes/default/contexts/python/interrupt?session=contexts", nil).Into(t, http.StatusNoContent, nil)
	if out := <-over; out["status"] != "interrupted" {
		t.Errorf("got %v", out)
	}
	if got := value(post("/python/run", object{"code": "x"}, http.StatusOK)); got != "41" {
		t.Errorf("after an interrupt: %s", got)
	}

	// Node.js that is busy behind an await, too.
	post("/node/run", object{"code": "var z = 6"}, http.StatusOK)
	if out := post("/node/run", object{"code": "await 1; while (true);", "timeout_ms": 1000}, http.StatusOK); out["status"] != "timeout" || out["stderr"] != "" {
		t.Errorf("got %v", out)
	}
	if got := value(post("/node/run", object{"code": "await new Promise((r) => setTimeout(r, 10, z * 7))"}, http.StatusOK)); got != "42" {
		t.Errorf("after an interrupt: %s", got)
	}

	// One whose interpreter has ended is deleted, or has another, like any other.
	for _, c := range []struct{ id, end, code, want string }{{"node", "process.exit(3)", "typeof y", "'undefined'"}, {"python", "import os\nos._exit(3)", "'x' in dir()", "False"}} {
		at := "/v1/sandboxes/default/contexts/" + c.id
		for _, how := range []string{http.MethodPost, http.MethodDelete} {
			if out := post("/"+c.id+"/run", object{"code": c.end}, http.StatusOK); out["status"] != "ended" {
				t.Fatalf("got %v", out)
			}
			post("/"+c.id+"/run", object{"code": "1"}, http.StatusConflict)
			if how == http.MethodPost {
				post("/"+c.id+"/restart", nil, http.StatusOK)
			} else {
				s.Must(t, s.key, how, at+"?session=contexts", nil).Into(t, http.StatusNoContent, nil)
				s.Must(t, s.key, how, at+"?session=contexts", nil).Into(t, http.StatusNotFound, nil)
			}
			if got := value(post("/"+c.id+"/run", object{"code": c.code}, http.StatusOK)); got != c.want {
				t.Errorf("%s after %s: %s", c.id, how, got)
			}
		}
	}
	for _, bad := range []object{{}, {"code": 1}, {"code": "1", "timeout": 1}, {"code": "1", "timeout_ms": -1}} {
		post("/python/run", bad, http.StatusBadRequest)
	}
	post("/ruby/run", object{"code": "1"}, http.StatusNotFound)
}
