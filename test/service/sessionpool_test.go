package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// plans has the agent of a session make calls, and returns what it says of the last one.
func (k *talker) plans(status string, steps ...toolStep) string {
	k.Helper()
	text, err := json.Marshal(steps)
	if err != nil {
		k.Fatal(err)
	}
	var turn sessionTurn
	k.post(message(string(text))).Into(k, http.StatusOK, &turn)
	if turn.Status != status {
		k.Fatalf("%+v, want %s\n%s", turn, status, k.line.now().Log())
	}
	return turn.Content
}

// uses calls a tool of the session's sandboxes as its client.
func (k *talker) uses(tool string, input map[string]any, status int, into any) string {
	k.Helper()
	path := strings.TrimPrefix(k.path, "/default") + "/tools/" + tool
	a := k.line.now().Must(k, k.key, http.MethodPost, path, input)
	a.Into(k, status, into)
	return string(a.Body)
}

func sh(command string) map[string]any { return map[string]any{"command": command} }

func in(sandbox string, input map[string]any) map[string]any {
	input["sandbox"] = sandbox
	return input
}

// TestSessionSandboxes: an agent and its client share the named sandboxes of a session, which
// keep files and processes through sleep and the end of the server, and go with the session.
func TestSessionSandboxes(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_SANDBOX_SLEEP_AFTER=2s", "ATOLL_SANDBOX_FROZEN=1s")
	k := &talker{t, line, line.now().Tenant(t, "pool", "enterprise"), ""}
	addModel(t, line.now(), "scripted", planner(t).URL, "tools")
	helper := k.begin(map[string]any{"slug": "helper", "tools": []any{map[string]string{"type": "sandboxes"}}})

	// What one does the other sees, also in a sandbox of another name.
	if said := helper.plans("completed", toolStep{"shell", sh("echo from the agent > a; (i=0; while :; do i=$((i+1)); echo $i > ticks; sleep 0.1; done) >/dev/null 2>&1 & echo started")}); !strings.Contains(said, "started") {
		t.Errorf("it says %q", said)
	}
	var out struct{ Stdout, Content, Status string }
	if helper.uses("shell", sh("cat a; echo from the client > b"), http.StatusOK, &out); out.Stdout != "from the agent\n" {
		t.Errorf("the client sees %q", out.Stdout)
	}
	if said := helper.plans("completed", toolStep{"write_file", in("two", map[string]any{"path": "c", "content": "x"})}, toolStep{"transfer", map[string]any{"from_sandbox": "default", "from_path": "b", "to_sandbox": "two", "to_path": "b"}},
		toolStep{"read_file", in("two", map[string]any{"path": "b"})}); !strings.Contains(said, "from the client") {
		t.Errorf("it says %q", said)
	}
	if said := helper.plans("completed", toolStep{"sandbox_list", map[string]any{}}); !strings.Contains(said, `"default"`) || !strings.Contains(said, `"two"`) {
		t.Errorf("it says %q", said)
	}
	// Code runs apart, for both in the same place.
	helper.plans("completed", toolStep{"execute_code", map[string]any{"code": "open('mark', 'w').write('7')"}})
	if got := helper.uses("execute_code", map[string]any{"code": "print(open('mark').read())"}, http.StatusOK, nil); !strings.Contains(got, `"stdout":"7\n"`) {
		t.Errorf("the client's code sees %s", got)
	}

	t.Run("bound", func(t *testing.T) {
		var said string
		for i := 3; i <= 6; i++ {
			said = helper.plans("completed", toolStep{"shell", in(fmt.Sprint("n", i), sh("true"))})
		}
		if !strings.Contains(said, "which is the most") {
			t.Errorf("a sixth sandbox: %q", said)
		}
		if got := helper.uses("shell", in("n7", sh("true")), http.StatusTooManyRequests, nil); !strings.Contains(got, "session_sandboxes") {
			t.Errorf("a sixth sandbox of the client: %s", got)
		}
	})
	t.Run("sleep", func(t *testing.T) {
		type listed struct {
			Sandboxes []struct{ Name, State, Kept string } `json:"sandboxes"`
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			a := line.now().Must(t, k.key, http.MethodGet, "/v1/sandboxes?session="+helper.id(), nil)
			if a.Status == http.StatusOK && strings.Count(string(a.Body), `"kept":"disk"`) == 5 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("they do not sleep: %s", a.Body)
			}
		}
		if said := helper.plans("completed", toolStep{"shell", sh("read a < ticks; sleep 0.5; read b < ticks; [ $b -gt $a ] && echo goes on")}); !strings.Contains(said, "goes on") {
			t.Errorf("after sleep it says %q", said)
		}
	})
	t.Run("kill", func(t *testing.T) {
		done := make(chan string, 1)
		go func() {
			a, err := line.now().Call(t.Context(), k.key, http.MethodPost, helper.path+"/events", message(`[{"tool":"shell","args":{"command":"echo once >> count; sleep 4; echo came back"}}]`), http.Header{"Prefer": {"respond-async"}})
			done <- fmt.Sprint(a, err)
		}()
		<-done
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			var seen struct{ Stdout string }
			if helper.uses("shell", sh("cat count 2>/dev/null"), http.StatusOK, &seen); seen.Stdout != "" || time.Now().After(end) {
				break
			}
		}
		line.next(syscall.SIGKILL)
		helper.until("idle")
		var last string
		for _, e := range helper.events("") {
			if e.Type == "message" {
				last = e.Content
			}
		}
		if !strings.Contains(last, "came back") {
			t.Errorf("after the server was killed it says %q\n%s", last, line.now().Log())
		}
		if helper.uses("shell", sh("cat a b count"), http.StatusOK, &out); out.Stdout != "from the agent\nfrom the client\nonce\n" {
			t.Errorf("after the server was killed there is %q", out.Stdout)
		}
	})
	t.Run("others", func(t *testing.T) {
		other := &talker{t, line, line.now().Tenant(t, "pool-other", "pro"), helper.path}
		other.uses("shell", sh("true"), http.StatusNotFound, nil)
		none := &talker{t, line, k.key, "/v1/sessions/sess_" + strings.Repeat("0", 32)}
		none.uses("shell", sh("true"), http.StatusNotFound, nil)
		a := line.now().Must(t, k.key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "x", "session": none.id()})
		if a.Status != http.StatusNotFound {
			t.Errorf("a sandbox of a session that there is not: %d %s", a.Status, a.Body)
		}
	})
	t.Run("end", func(t *testing.T) {
		line.now().Must(t, k.key, http.MethodPost, helper.path+"/archive", nil).Into(t, http.StatusOK, nil)
		helper.uses("shell", sh("true"), http.StatusConflict, nil)
		a := line.now().Must(t, k.key, http.MethodGet, "/v1/sandboxes?session="+helper.id(), nil)
		if strings.Contains(string(a.Body), `"default"`) {
			t.Errorf("after archiving there is %s", a.Body)
		}
		if a := line.now().Must(t, k.key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "x", "session": helper.id()}); a.Status != http.StatusConflict {
			t.Errorf("a sandbox of an archived session: %d %s", a.Status, a.Body)
		}
	})
}

func (k *talker) id() string { return k.path[strings.LastIndexByte(k.path, '/')+1:] }

// TestLostSandbox: who works in the sandbox of the tool sandbox is told when it is gone.
func TestLostSandbox(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	k := &talker{t, line, line.now().Tenant(t, "lost", "pro"), ""}
	addModel(t, line.now(), "scripted", planner(t).URL, "tools")
	helper := k.begin(map[string]any{"tools": []any{map[string]string{"type": "sandbox"}}})
	run := func(code string) string {
		return helper.plans("completed", toolStep{"run_code", map[string]any{"language": "bash", "code": code}})
	}
	if said := run("echo x > file"); strings.Contains(said, "has ended") {
		t.Errorf("at first it says %q", said)
	}
	if said := run("cat file"); strings.Contains(said, "has ended") || !strings.Contains(said, "x") {
		t.Errorf("then it says %q", said)
	}
	line.next(syscall.SIGKILL)
	if said := run("cat file || echo none"); !strings.HasPrefix(said, "The sandbox of the earlier calls has ended") || !strings.Contains(said, "none") {
		t.Errorf("after the server was killed it says %q", said)
	}
}
