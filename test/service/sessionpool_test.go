package service

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
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

// sessionSandboxes: an agent and its client share the named sandboxes of a session, which
// keep files and processes through sleep and the end of the server, and go with the session.
func sessionSandboxes(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_SANDBOX_SLEEP_AFTER=2s", "ATOLL_SANDBOX_FROZEN=1s")
	k := &talker{t, line, line.now().Tenant(t, "pool", "enterprise"), ""}
	addModel(t, line.now(), "scripted", planner(t).URL, "tools")
	helper := k.begin(map[string]any{"slug": "helper", "tools": []any{map[string]string{"type": "sandboxes"}}})

	// What one does the other sees, also in a sandbox of another name.
	if said := helper.plans("completed", toolStep{"shell", sh("echo from the agent > a; (i=0; while :; do i=$((i+1)); echo $i > next; mv next ticks; sleep 0.1; done) >/dev/null 2>&1 & echo started")}); !strings.Contains(said, "started") {
		t.Errorf("it says %q", said)
	}
	var out struct{ Stdout, Content, Status string }
	if helper.uses("shell", sh("cat a; echo from the client > b"), http.StatusOK, &out); out.Stdout != "from the agent\n" {
		t.Errorf("the client sees %q", out.Stdout)
	}
	for command, result := range map[string]string{"grep -q client b": `"satisfied"`, "grep -q nothing b; exit 3": `"max_iterations_reached"`} {
		helper.post(map[string]any{"type": "user.define_outcome", "description": "[]", "check": map[string]any{"command": command, "timeout_ms": 20_000}, "max_iterations": 1}).Into(t, http.StatusOK, &struct{}{})
		if all := helper.events("&types=outcome_evaluation_end"); len(all) == 0 || !strings.Contains(all[len(all)-1].raw, result) {
			t.Errorf("the check %q in the session's sandbox: %+v", command, all)
		}
	}
	if said := helper.plans("completed", toolStep{"write_file", in("two", map[string]any{"path": "c", "content": "x"})}, toolStep{"transfer", map[string]any{"from_sandbox": "default", "from_path": "b", "to_sandbox": "two", "to_path": "b"}},
		toolStep{"read_file", in("two", map[string]any{"path": "b"})}); !strings.Contains(said, "from the client") {
		t.Errorf("it says %q", said)
	}
	if said := helper.plans("completed", toolStep{"sandbox_list", map[string]any{}}); !strings.Contains(said, `"default"`) || !strings.Contains(said, `"two"`) {
		t.Errorf("it says %q", said)
	}
	text, err := json.Marshal([]toolStep{{"shell", sh("cat given/in.txt")}})
	if err != nil {
		t.Fatal(err)
	}
	given := message(string(text))
	given["files"] = map[string]string{"given/in.txt": "of the message"}
	var turn sessionTurn
	if helper.post(given).Into(t, http.StatusOK, &turn); !strings.Contains(turn.Content, "of the message") {
		t.Errorf("of a file of a message it says %+v", turn)
	}
	// Code runs apart, for both in the same place, if the tenant's policy has it run.
	s := line.now()
	admin, tenant := s.AdminKey(t), "/v1/admin/tenants/pool"
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"sandbox_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPut, tenant+"/templates/default", map[string]any{"sandbox": map[string]string{"environment": "internal-only"}}).Into(t, http.StatusOK, nil)
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
		atolltest.Until(t, time.Minute, "all sleep on disk", func() bool {
			a := line.now().Must(t, k.key, http.MethodGet, "/v1/sandboxes?session="+helper.id(), nil)
			return a.Status == http.StatusOK && strings.Count(string(a.Body), `"kept":"disk"`) == 5
		})
		if said := helper.plans("completed", toolStep{"shell", sh("read a < ticks; b=$a; until [ $b -gt $a ]; do sleep 0.1; read b < ticks; done; echo continues")}); !strings.Contains(said, "continues") {
			t.Errorf("after sleep it says %q", said)
		}
	})
	t.Run("kill", func(t *testing.T) {
		done := make(chan string, 1)
		go func() {
			a, err := line.now().Call(t.Context(), k.key, http.MethodPost, helper.path+"/events", message(`[{"tool":"shell","args":{"command":"echo once >> count; sleep 4; echo came back"}}]`), http.Header{"Prefer": {"respond-async"}})
			done <- fmt.Sprint(a, err)
		}()
		atolltest.Heard(t, done, "the message is taken")
		atolltest.Until(t, time.Minute, "the command runs", func() bool {
			var seen struct{ Stdout string }
			helper.uses("shell", sh("cat count 2>/dev/null"), http.StatusOK, &seen)
			return seen.Stdout != ""
		})
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

// TestLostSandbox: who works in the sandbox of the tool sandbox is told when it is gone. A
// kill of the server leaves it.
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
	if said := run("cat file"); strings.Contains(said, "has ended") || !strings.Contains(said, "x") {
		t.Errorf("after the server was killed it says %q", said)
	}
	for _, folder := range atolltest.Trace(line.data).Sandboxes() {
		atolltest.KillSandbox(t, folder)
	}
	if said := run("cat file || echo none"); !strings.HasPrefix(said, "The sandbox of the earlier calls has ended") || !strings.Contains(said, "none") {
		t.Errorf("after the sandbox was killed it says %q", said)
	}
}

// repository serves a git repository by plain HTTP at an address of this machine that sandboxes
// can be allowed to reach.
func repository(t *testing.T) (address, url string) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "work"}, {"-C", "work", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "-m", "first"},
		{"-C", "work", "tag", "v1"}, {"-C", "work", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "-m", "second"},
		{"clone", "--quiet", "--bare", "work", "served.git"}, {"-C", "served.git", "update-server-info"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	address = machine(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return address, "http://" + l.Addr().String() + "/served.git"
}

// TestSessionMounts: a session's sandbox has what it was made with, by the network that its
// environment allows, and keeps what the agent makes of it.
func TestSessionMounts(t *testing.T) {
	address, from := repository(t)
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_NETWORK_ALLOW="+address)
	s := line.now()
	k := &talker{t, line, s.Tenant(t, "mounts", "enterprise"), ""}
	addModel(t, s, "scripted", planner(t).URL, "tools")
	var agent struct{ ID string }
	s.Must(t, k.key, http.MethodPost, "/v1/agents", map[string]any{"name": "A", "model": map[string]string{"name": "scripted"}, "tools": []any{map[string]string{"type": "sandboxes"}}}).Into(t, http.StatusCreated, &agent)
	mounts := []any{
		map[string]any{"type": "file", "path": "in/notes.txt", "content": "read me\n"}, map[string]any{"type": "file", "path": "/home/user/raw", "content": "AAE=", "encoding": "base64"},
		// The platform does not clone by this configuration, whose proxy leads nowhere.
		map[string]any{"type": "file", "path": ".gitconfig", "content": "[http]\nproxy = http://127.0.0.1:9\n[core]\nfsmonitor = touch /home/user/planted\nhooksPath = /home/user\n"},
		map[string]any{"type": "git_repository", "path": "repo", "url": from, "ref": "v1"},
	}
	begin := func() *talker {
		var made struct {
			ID     string
			Mounts []struct{ Type, Path string }
		}
		s.Must(t, k.key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID, "mounts": mounts}).Into(t, http.StatusCreated, &made)
		if len(made.Mounts) != 4 || made.Mounts[1].Path != "raw" {
			t.Errorf("%+v", made)
		}
		return &talker{t, line, k.key, "/v1/sessions/" + made.ID}
	}
	blocked := begin()
	if said := blocked.plans("completed", toolStep{"shell", sh("true")}); !strings.Contains(said, "mounts[3], repo, cannot be made: git: ") {
		t.Errorf("without a network it says %q", said)
	}
	admin, base := s.AdminKey(t), "/v1/admin/tenants/mounts"
	s.Must(t, admin, http.MethodPatch, base, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	network := map[string]any{"enabled": true, "allowed_hosts": []string{}, "allowed_cidrs": []string{address + "/32"}}
	s.Must(t, admin, http.MethodPatch, base+"/environments/main", map[string]any{"permissions": map[string]any{"network": network}}).Into(t, http.StatusOK, nil)

	helper := begin()
	said := helper.plans("completed", toolStep{"shell", sh("cat in/notes.txt; od -An -tx1 raw; git -C repo log --format=%s; ls -a; rm in/notes.txt; echo mine > raw")})
	if !strings.Contains(said, "read me") || !strings.Contains(said, "00 01") || !strings.Contains(said, "first") || strings.Contains(said, "second") || strings.Contains(said, "cloning") || strings.Contains(said, "planted") {
		t.Errorf("it says %q", said)
	}
	line.next(syscall.SIGKILL)
	var out struct{ Stdout string }
	if helper.uses("shell", sh("ls in; cat raw"), http.StatusOK, &out); out.Stdout != "mine\n" {
		t.Errorf("what the agent has changed is %q", out.Stdout)
	}
	for says, body := range map[string]string{
		"mounts[0].path": `{"mounts":[{"type":"file","path":"/etc/x","content":""}]}`, "mounts[0].content": `{"mounts":[{"type":"file","path":"x"}]}`,
		"mounts[0].url": `{"mounts":[{"type":"git_repository","path":"x","url":"file:///etc"}]}`, "mounts[0]: content": `{"mounts":[{"type":"volume","path":"/data/a/b","content":"x"}]}`,
	} {
		var in map[string]any
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		in["agent_id"] = agent.ID
		if a := line.now().Must(t, k.key, http.MethodPost, "/v1/sessions", in); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), says) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
}

// mcpServer speaks MCP by its input and output, and is as hostile as it is told.
const mcpServer = `import json, os, sys, time
calls = 0
for line in sys.stdin:
    q = json.loads(line)
    if "id" not in q: continue
    def say(result): print(json.dumps({"jsonrpc": "2.0", "id": q["id"], "result": result}), flush=True)
    if q["method"] == "initialize":
        print("starting", file=sys.stderr, flush=True)
        say({"protocolVersion": q["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
    elif q["method"] == "tools/list":
        say({"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("count", "flood", "junk", "die")]})
    elif q["method"] == "tools/call":
        calls += 1
        name = q["params"]["name"]
        if name == "flood":
            while True: print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 10000}}), flush=True)
        if name == "junk": print("x" * (9 << 20), flush=True)
        if name == "die": print("the last words", file=sys.stderr, flush=True); os._exit(7)
        say({"content": [{"type": "text", "text": "call %d of %s as %d in %s" % (calls, os.environ.get("WHO"), os.getuid(), os.getcwd())}]})
    else: print(json.dumps({"jsonrpc": "2.0", "id": q["id"], "error": {"code": -32601, "message": "no such method"}}), flush=True)
`

// TestSessionPrograms: an MCP server that is a program runs in the session's sandbox, with its
// rights, is held to the policy, and can do what it wants without harm.
func TestSessionPrograms(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	s := line.now()
	key := s.Tenant(t, "programs", "enterprise")
	addModel(t, s, "scripted", planner(t).URL, "tools")
	var agent, made struct{ ID string }
	s.Must(t, key, http.MethodPost, "/v1/agents", map[string]any{
		"name": "A", "model": map[string]string{"name": "scripted"}, "tools": []any{map[string]string{"type": "sandboxes"}, map[string]string{"type": "mcp", "server": "odd"}},
		"mcp_servers": []any{map[string]any{"type": "stdio", "name": "odd", "command": "python3", "args": []string{"server.py"}, "env": map[string]string{"WHO": "variable-secret"}}},
		"tool_policy": map[string]any{"deny_list": []string{"odd/secret"}, "require_confirmation": []string{"odd/die"}},
	}).Into(t, http.StatusCreated, &agent)
	if a := s.Must(t, key, http.MethodGet, "/v1/agents/"+agent.ID, nil); strings.Contains(string(a.Body), "variable-secret") || !strings.Contains(string(a.Body), `"command":"python3"`) {
		t.Errorf("it is shown as %s", a.Body)
	}
	s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID, "mounts": []any{map[string]any{"type": "file", "path": "server.py", "content": mcpServer}}}).Into(t, http.StatusCreated, &made)
	helper := &talker{t, line, key, "/v1/sessions/" + made.ID}
	none := map[string]any{}
	helper.plans("completed", toolStep{"odd__count", none})
	if said := helper.plans("completed", toolStep{"odd__count", none}); said != "call 2 of [covered] as 1000 in /home/user" {
		t.Errorf("it says %q", said)
	}
	if said := helper.plans("completed", toolStep{"shell", sh("ps -eo args | grep -c '[s]erver.py'")}); !strings.Contains(said, "\n1\n") {
		t.Errorf("of its processes it says %q", said)
	}
	// The command is the image's, whatever the home directory has.
	helper.plans("completed", toolStep{"shell", sh("mkdir -p .local/bin; printf '#!/bin/sh\nexit 1\n' > .local/bin/python3; chmod +x .local/bin/python3; ! python3 -c 0")})
	for tool, want := range map[string]string{"flood": "too large", "junk": "too long"} {
		if said := helper.plans("completed", toolStep{"odd__" + tool, none}); !strings.Contains(said, want) {
			t.Errorf("of %s it says %q", tool, said)
		}
		if said := helper.plans("completed", toolStep{"odd__count", none}); !strings.HasPrefix(said, "call 1 of") {
			t.Errorf("after %s it says %q", tool, said)
		}
	}
	text, _ := json.Marshal([]toolStep{{"odd__die", none}})
	var turn sessionTurn
	helper.post(message(string(text))).Into(t, http.StatusOK, &turn)
	if len(turn.RequiresAction) != 1 {
		t.Fatalf("%+v", turn)
	}
	helper.post(confirm(turn.RequiresAction[0].ToolUseID, true)).Into(t, http.StatusOK, &turn)
	if !strings.Contains(turn.Content, "exit code 7: starting the last words") {
		t.Errorf("it says %+v", turn)
	}
	line.next(syscall.SIGKILL)
	if said := helper.plans("completed", toolStep{"odd__count", none}, toolStep{"shell", sh("ps -eo args | grep -c '[s]erver.py'")}); !strings.Contains(said, "\n1\n") {
		t.Errorf("after the server was killed it says %q", said)
	}
	s = line.now()
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/programs", map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/programs/environments/main", map[string]any{"permission_profile": "restricted"}).Into(t, http.StatusOK, nil)
	if a := helper.post(message("[]")); a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), "allow_mcp_servers") {
		t.Errorf("where the environment allows no servers: %d %s", a.Status, a.Body)
	}
}
