package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestSandboxSleepsAndForks has a program count through a sleep and in every
// copy, which all have a name, and numbers, of their own.
func TestSandboxSleepsAndForks(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "default")
	r.shell(`(i=0; while :; do i=$((i+1)); echo $i > next; mv next n; sleep 0.05; done) > /dev/null 2>&1 &`)
	count := func(name string) int {
		out := r.tool("shell", object{"sandbox": name, "command": "until [ -s n ]; do sleep 0.01; done; cat n"}, http.StatusOK)
		n, err := strconv.Atoi(strings.TrimSpace(out["stdout"].(string)))
		if err != nil {
			t.Fatalf("%s: %v", name, out)
		}
		return n
	}
	goesOn := func(name string) {
		t.Helper()
		before := count(name)
		atolltest.Until(t, time.Minute, name+" continues counting", func() bool { return count(name) > before })
	}
	goesOn("default")
	before := count("default")
	if got := r.ask(http.MethodPost, "/sleep", nil, http.StatusOK); got["status"] != "sleeping" || got["unused_until"] == nil {
		t.Fatalf("after it was sent to sleep: %v", got)
	}
	if got := count("default"); got < before {
		t.Errorf("it woke as it was earlier: %d after %d", got, before)
	}
	goesOn("default")

	ids := map[string]bool{r.shell("cat /etc/machine-id /proc/sys/kernel/random/uuid; hostname"): true}
	for _, c := range r.ask(http.MethodPost, "/fork?count=2", nil, http.StatusCreated)["data"].([]any) {
		name := c.(map[string]any)["name"].(string)
		goesOn(name)
		own := r.tool("shell", object{"sandbox": name, "command": "cat /etc/machine-id /proc/sys/kernel/random/uuid; hostname"}, http.StatusOK)
		ids[own["stdout"].(string)] = true
	}
	if len(ids) != 3 {
		t.Errorf("two copies and what they are copies of are %d different ones: %v", len(ids), ids)
	}
	goesOn("default")
	r.ask(http.MethodPost, "/fork?count=51", nil, http.StatusBadRequest)
	r.ask(http.MethodPost, "/fork?copies=1", nil, http.StatusBadRequest)
	for _, path := range []string{"/fork", "/snapshots", "/sleep"} {
		if got := r.ask(http.MethodPost, path, object{"count": 2}, http.StatusBadRequest); !strings.Contains(fmt.Sprint(got["message"]), "in the query") {
			t.Errorf("%s with a body: %v", path, got)
		}
	}
}
