package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// session is a caller of tools: a key, and the pool that it uses.
type session struct {
	*atolltest.Server
	t         *testing.T
	key, name string
}

// tool calls a tool, which must answer with a status.
func (s session) tool(name string, in any, status int) map[string]any {
	s.t.Helper()
	var out map[string]any
	s.Must(s.t, s.key, http.MethodPost, "/v1/sessions/"+url.PathEscape(s.name)+"/tools/"+name, in).Into(s.t, status, &out)
	return out
}

// shell runs a command in the default sandbox, and returns its output.
func (s session) shell(command string) string {
	s.t.Helper()
	out := s.tool("shell", object{"command": command}, http.StatusOK)
	if out["exit_code"] != 0.0 {
		s.t.Fatalf("%s: %v", command, out)
	}
	return out["stdout"].(string)
}

func (s session) refused(name string, in any, status int, says string) {
	s.t.Helper()
	out := s.tool(name, in, status)
	if message, _ := out["message"].(string); out["error"] == "" || !strings.Contains(message, says) {
		s.t.Errorf("%s %v: %v, want %q", name, in, out, says)
	}
}

// newSession is a pool of its own, whose sandboxes go with the test.
func newSession(t *testing.T, s *atolltest.Server, key, name string) session {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		var all struct {
			Data []struct {
				ID string `json:"sandbox_id"`
			} `json:"data"`
		}
		answer, err := s.Call(ctx, key, http.MethodGet, "/v1/sandboxes?session="+url.QueryEscape(name), nil, nil)
		if err != nil {
			return // the server has ended, and they with it
		}
		answer.Into(t, http.StatusOK, &all)
		for _, sb := range all.Data {
			if gone, err := s.Call(ctx, key, http.MethodDelete, "/v1/sandboxes/"+sb.ID, nil, nil); err != nil || gone.Status != http.StatusNoContent {
				t.Errorf("remove %s: %+v %v", sb.ID, gone, err)
			}
		}
	})
	return session{s, t, key, name}
}

func TestToolShell(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, "shell")
	if out := s.tool("shell", object{"command": "echo out; echo err >&2; pwd; exit 3"}, http.StatusOK); out["stdout"] != "out\n/home/user\n" || out["stderr"] != "err\n" || out["exit_code"] != 3.0 || len(out) != 3 {
		t.Errorf("got %v", out)
	}
	if got := s.tool("shell", object{"command": "pwd", "working_dir": "/tmp", "timeout_ms": nil}, http.StatusOK); got["stdout"] != "/tmp\n" {
		t.Errorf("got %v", got)
	}
	if got := s.tool("shell", object{"command": "curl -sS https://pypi.org"}, http.StatusOK); got["exit_code"] != 6.0 || !strings.Contains(fmt.Sprint(got["hint"]), "atoll env set TENANT NAME --allow HOST") {
		t.Errorf("without a network: %v", got)
	}
	s.shell("mkdir -p in/side")
	if got := s.tool("shell", object{"command": "pwd", "working_dir": "in/side"}, http.StatusOK); got["stdout"] != "/home/user/in/side\n" {
		t.Errorf("got %v", got)
	}
	s.refused("shell", object{"command": "echo " + strings.Repeat("x", 140_000)}, http.StatusBadRequest, "write them to a file")
	for name, command := range map[string]string{
		"quotes": `printf %s "it's \"quoted\" \$HOME"`, "newlines": "printf %s a\nprintf %s b", "a dash": "-x 2>/dev/null || printf ran",
		"much": "printf %s " + strings.Repeat("x", 100_000) + " | tail -c 3",
	} {
		if got, want := s.shell(command), map[string]string{"quotes": `it's "quoted" $HOME`, "newlines": "ab", "a dash": "ran", "much": "xxx"}[name]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := s.shell(`printf 'a\377b'`); got != "a\ufffdb" {
		t.Errorf("got %q", got)
	}

	// One that goes on in the background does not hold the answer, and lives.
	started := time.Now()
	s.shell("sleep 300 & echo $! > pid")
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the answer took %s", took)
	}
	s.shell("kill -0 $(cat pid)")

	// A timeout ends the command and what it started, in whatever group.
	var out object
	for timeout := 700; timeout < 10_000; timeout *= 2 { // longer, where it has not begun by then
		out = s.tool("shell", object{"command": "setsid sleep 301 & echo $! > late; echo begun; sleep 302", "timeout_ms": timeout}, http.StatusOK)
		if out["stdout"] != "" {
			break
		}
	}
	if out["stdout"] != "begun\n" || out["exit_code"] != 124.0 || out["timed_out"] != true {
		t.Errorf("got %v", out)
	}
	if got := s.shell("for i in $(seq 100); do kill -0 $(cat late) 2>/dev/null || { echo gone; exit; }; sleep 0.1; done; echo lives"); got != "gone\n" {
		t.Errorf("what a timed out command started %q", got)
	}

	out = s.tool("shell", object{"command": "head -c 1000000 /dev/zero | tr '\\0' a; head -c 5 /dev/zero | tr '\\0' b >&2"}, http.StatusOK)
	if stdout := out["stdout"].(string); len(stdout) != 256<<10 || out["stdout_truncated"] != true || out["stderr"] != "bbbbb" || out["stderr_truncated"] != nil {
		t.Errorf("%d bytes, %v, %v", len(stdout), out["stdout_truncated"], out["stderr"])
	}
}

func TestToolFiles(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, "files")
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, path := range []string{"plain", "-rf", "a b/c\nd/\"q\"/'e'", "$(touch pwned)", "*", "ünïcode", "/tmp/deep/er/file"} {
		text := "one\n\x00two " + path
		if got := s.tool("write_file", object{"path": path, "content": text}, http.StatusOK); got["ok"] != true || got["size"] != float64(len(text)) {
			t.Errorf("%q: %v", path, got)
		}
		if got := s.tool("write_file", object{"path": path, "content": "+", "append": true}, http.StatusOK); got["size"] != float64(len(text)+1) {
			t.Errorf("%q: %v", path, got)
		}
		if got := s.tool("read_file", object{"path": path}, http.StatusOK); got["content"] != text+"+" || got["size"] != float64(len(text)+1) || len(got) != 2 {
			t.Errorf("%q: %v", path, got)
		}
	}
	binary := base64.StdEncoding.EncodeToString(all)
	s.tool("write_file", object{"path": "bytes", "content": binary, "encoding": "base64"}, http.StatusOK)
	if got := s.tool("read_file", object{"path": "bytes"}, http.StatusOK); got["content"] != binary || got["encoding"] != "base64" || got["size"] != 256.0 {
		t.Errorf("got %v", got)
	}
	if got := s.tool("read_file", object{"path": "bytes", "offset": 65, "limit": 3}, http.StatusOK); got["content"] != "ABC" || got["size"] != 256.0 {
		t.Errorf("got %v", got)
	}
	if got := s.tool("read_file", object{"path": "bytes", "offset": 300}, http.StatusOK); got["content"] != "" || got["size"] != 256.0 {
		t.Errorf("got %v", got)
	}
	// A window that cuts characters is text all the same.
	s.tool("write_file", object{"path": "umlauts", "content": "äöü"}, http.StatusOK)
	if got := s.tool("read_file", object{"path": "umlauts", "offset": 1, "limit": 4}, http.StatusOK); got["content"] != "\ufffdö\ufffd" || got["encoding"] != nil {
		t.Errorf("got %v", got)
	}

	s.shell(`mkdir g && cd g && mkdir -p x/.y/z && touch b a x/.y/z/deep .hidden $'new\nline' && ln -s / x/out`)
	for pattern, want := range map[string][]string{
		"*": {".hidden", "a", "b", "new\nline", "x"}, "**/deep": {"x/.y/z/deep"}, "[ab]": {"a", "b"}, "nothing*": {},
	} {
		got := s.tool("glob", object{"pattern": pattern, "cwd": "/home/user/g"}, http.StatusOK)
		var files []string
		for _, f := range got["files"].([]any) {
			files = append(files, f.(string))
		}
		if !slices.Equal(files, want) {
			t.Errorf("%s: got %q, want %q", pattern, files, want)
		}
	}
	s.shell(`cd g && echo here > $'caf\351'`)
	got := s.tool("glob", object{"pattern": "caf*", "cwd": "/home/user/g"}, http.StatusOK)
	if want := []any{"caf\ufffd"}; !reflect.DeepEqual(got["files"], want) {
		t.Errorf("got %v, want %q", got, want)
	}
	quoted, _ := got["quoted"].([]any)
	if len(quoted) != 1 {
		t.Fatalf("got %v", got)
	}
	if got := s.tool("shell", object{"command": "cat g/" + quoted[0].(string)}, http.StatusOK); got["stdout"] != "here\n" {
		t.Errorf("%s names nothing: %v", quoted[0], got)
	}
	s.shell("! test -e pwned") // no path was run as a command

	s.refused("glob", object{"pattern": "*", "cwd": "plain"}, http.StatusBadRequest, "not a directory")
	deep := "g/" + strings.Repeat("d/", 120)
	s.shell("mkdir -p " + deep)
	got = s.tool("glob", object{"pattern": strings.Repeat("**/", 40) + "deep"}, http.StatusOK) // and that in a moment
	if want := []any{"g/x/.y/z/deep"}; !reflect.DeepEqual(got["files"], want) {
		t.Errorf("got %v, want %q", got, want)
	}
	s.shell(`python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"`)
	s.refused("read_file", object{"path": "sock"}, http.StatusBadRequest, "is no file but")
}

func TestToolTransfer(t *testing.T) {
	s := newSession(t, shared(t), atolltest.Key, "transfer")
	s.shell(`mkdir -p tree/empty && cd tree && printf 123 > f && chmod 750 f && ln -s f link && ln -s /etc/passwd out && printf 45 > $'\377' && ln f hard`)
	move := func(from, to string, recursive bool) object {
		return object{"from_sandbox": "default", "from_path": from, "to_sandbox": "other", "to_path": to, "recursive": recursive}
	}
	s.refused("transfer", move("tree", "copy", false), http.StatusBadRequest, "set recursive")
	if got := s.tool("transfer", move("tree", "a/copy", true), http.StatusOK); got["ok"] != true || got["bytes"] != 5.0 {
		t.Errorf("got %v", got)
	}
	look := object{"sandbox": "other", "command": "cd a/copy && stat -c '%a %F' f empty link && readlink out && cat hard $'\\377'"}
	if got := s.tool("shell", look, http.StatusOK); got["stdout"] != "750 regular file\n755 directory\n777 symbolic link\n/etc/passwd\n12345" {
		t.Errorf("got %v", got)
	}
	if got := s.tool("transfer", move("/home/user/tree/f", "-name", false), http.StatusOK); got["bytes"] != 3.0 {
		t.Errorf("got %v", got)
	}
	if got := s.tool("read_file", object{"sandbox": "other", "path": "-name"}, http.StatusOK); got["content"] != "123" {
		t.Errorf("got %v", got)
	}
	s.shell("touch -d @1000000000.25 tree/f && mkdir in && touch -d @1000000000.5 in/g in")
	for from, to := range map[string]string{"tree/f": "f", "tree/link": "behind", "in": "a"} { // a is there
		s.tool("transfer", move(from, to, true), http.StatusOK)
	}
	look = object{"sandbox": "other", "command": "stat -c %.9Y f behind a/g"}
	if got := s.tool("shell", look, http.StatusOK); got["stdout"] != "1000000000.250000000\n1000000000.250000000\n1000000000.500000000\n" {
		t.Errorf("times: %v", got)
	}
	s.refused("transfer", move("nothing", "x", true), http.StatusNotFound, "no such file")
	s.refused("transfer", move("/dev/zero", "x", false), http.StatusBadRequest, `"/dev/zero" is no file`)
	s.refused("transfer", move("tree/f", "a/copy", false), http.StatusBadRequest, `unpack "/home/user/a/copy": is a directory`)
	s.refused("transfer", object{"from_sandbox": "unknown", "from_path": "a", "to_sandbox": "other", "to_path": "b"}, http.StatusNotFound, `no sandbox "unknown"`)

	// Onto or into itself, by whichever way that is: nothing is written, nothing lost.
	s.shell("ln -s tree same; ln -s ../tree/empty tree/way; ln -s tree/f one; ln -s /home/user loop; mkdir -p apart && ln -s ../tree/empty apart/way; ln -s nowhere tree/gone; (cd tree && ls -laR --time-style=full-iso) >before")
	within := func(from, to string) object {
		return object{"from_sandbox": "default", "from_path": from, "to_sandbox": "default", "to_path": to, "recursive": true}
	}
	for from, to := range map[string]string{
		"tree": "tree/in", "same": "tree", "./tree/": "same/in", "tree/.": "apart/way/in", "same/f": "one", "/home/user/tree": "loop/loop/same/empty/../new",
		"loop/tree": "same/gone",
	} {
		s.refused("transfer", within(from, to), http.StatusBadRequest, "into itself")
	}
	if got := s.shell("cd tree && ls -laR --time-style=full-iso | diff ../before -"); got != "" {
		t.Errorf("the folder has changed: %s", got)
	}
	for from, to := range map[string]string{"tree/empty": "same/next", "tree/f": "tree/g", "same": "tree2"} {
		s.tool("transfer", within(from, to), http.StatusOK)
	}

	s.shell("head -c 50000000 /dev/urandom > large")
	sum := s.shell("sha256sum < large")
	if got := s.tool("transfer", move("large", "large", false), http.StatusOK); got["bytes"] != 5e7 {
		t.Errorf("got %v", got)
	}
	if got := s.tool("shell", object{"sandbox": "other", "command": "sha256sum < large"}, http.StatusOK); got["stdout"] != sum {
		t.Errorf("got %v, want %s", got, sum)
	}
}

func TestToolPools(t *testing.T) {
	server := shared(t)
	s := newSession(t, server, atolltest.Key, "pool one")
	if got := s.tool("sandbox_list", object{}, http.StatusOK); len(got["sandboxes"].([]any)) != 0 {
		t.Errorf("a new session has %v", got)
	}
	for _, created := range []bool{true, false} {
		if got := s.tool("sandbox_create", object{"sandbox": "my_db", "image": "python:3"}, http.StatusOK); got["sandbox"] != "my_db" || got["created"] != created || len(got) != 2 {
			t.Errorf("got %v", got)
		}
	}
	if got := s.tool("sandbox_create", object{"sandbox": "my_db"}, http.StatusOK); got["created"] != false {
		t.Errorf("got %v", got)
	}
	if got := s.tool("sandbox_create", object{"sandbox": "old", "image": "python:3.10"}, http.StatusOK); !strings.Contains(fmt.Sprint(got["warning"]), "atoll image import python:3.10") {
		t.Errorf("a later version than was asked for: %v", got)
	}
	s.refused("sandbox_create", object{"sandbox": "other", "image": "ruby:3"}, http.StatusBadRequest, "atoll image import")
	s.tool("write_file", object{"path": "mine", "content": "mine"}, http.StatusOK)

	// Another session, and another tenant's of the same name, see nothing of it, also
	// if they have learned its id.
	var mine struct {
		ID string `json:"sandbox_id"`
	}
	server.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes/default?session=pool+one", nil).Into(t, http.StatusOK, &mine)
	id := mine.ID
	s.refused("transfer", object{"from_sandbox": "default", "from_path": "tree", "to_sandbox": id, "to_path": "tree/in", "recursive": true}, http.StatusBadRequest, "looks like an id")
	other := server.Tenant(t, "pools", "enterprise")
	for _, apart := range []session{newSession(t, server, atolltest.Key, "pool two"), newSession(t, server, other, "pool one")} {
		apart.t = t
		if got := apart.tool("sandbox_list", object{}, http.StatusOK); len(got["sandboxes"].([]any)) != 0 {
			t.Errorf("another's pool is %v", got)
		}
		apart.refused("read_file", object{"path": "mine"}, http.StatusNotFound, "no such file")
		apart.refused("transfer", object{"from_sandbox": "my_db", "from_path": "/etc/passwd", "to_sandbox": "default", "to_path": "x"}, http.StatusNotFound, "no sandbox")
		apart.refused("shell", object{"sandbox": id, "command": "true"}, http.StatusBadRequest, "looks like an id")
		apart.refused("transfer", object{"from_sandbox": id, "from_path": "mine", "to_sandbox": "default", "to_path": "x"}, http.StatusBadRequest, "looks like an id")
	}
	got := s.tool("sandbox_list", object{}, http.StatusOK)
	all := got["sandboxes"].([]any)
	if old := all[len(all)-1].(map[string]any); old["name"] != "old" || !strings.Contains(fmt.Sprint(old["warning"]), "Python 3.1") {
		t.Errorf("the list has %v", old)
	}
	got["sandboxes"] = all[:len(all)-1]
	want := []any{map[string]any{"name": "default", "image": atolltest.Image, "status": "running"}, map[string]any{"name": "my_db", "image": "python:3", "status": "running"}}
	if a, b := marshal(t, got["sandboxes"]), marshal(t, want); a != b {
		t.Errorf("got %s, want %s", a, b)
	}
	if got := s.tool("execute_code", object{"code": "print(6*7)"}, http.StatusOK); got["stdout"] != "42\n" || got["ok"] != true {
		t.Errorf("got %v", got)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestToolBadInput(t *testing.T) {
	server := shared(t)
	s := newSession(t, server, atolltest.Key, "bad")
	for _, c := range []struct {
		tool, says string
		in         any
	}{
		{"shell", "command is required", object{}},
		{"shell", "command must be a string", object{"command": 1}},
		{"shell", `unknown field "cmd"`, object{"command": "x", "cmd": "x"}},
		{"shell", "NUL", object{"command": "a\x00b"}},
		{"shell", "timeout_ms must be a whole number", object{"command": "x", "timeout_ms": 0.5}},
		{"shell", "timeout_ms must be an integer", object{"command": "x", "timeout_ms": "1"}},
		{"shell", "is not a valid name", object{"command": "x", "sandbox": "../x"}},
		{"shell", "is not a valid name", object{"command": "x", "sandbox": ""}},
		{"read_file", "offset must be", object{"path": "x", "offset": -1}},
		{"read_file", "limit must be", object{"path": "x", "limit": 1e9}},
		{"read_file", "encoding must be one of", object{"path": "x", "encoding": "latin1"}},
		{"write_file", "content is not valid base64", object{"path": "x", "content": "%", "encoding": "base64"}},
		{"read_file", "path must not be empty", object{"path": ""}},
		{"transfer", "to_path must not be empty", object{"from_sandbox": "a", "from_path": "b", "to_sandbox": "c", "to_path": ""}},
		{"write_file", "content is required", object{"path": "x"}},
		{"sandbox_create", "sandbox is required", object{}},
		{"sandbox_list", `unknown field "x"`, object{"x": 1}},
		{"transfer", "to_path is required", object{"from_sandbox": "a", "from_path": "b", "to_sandbox": "c"}},
		{"execute_code", "language must be one of", object{"code": "x", "language": "ruby"}},
	} {
		s.refused(c.tool, c.in, http.StatusBadRequest, c.says)
	}
	s.refused("nothing", object{}, http.StatusNotFound, "tool \"nothing\" not found")
	long := session{server, t, atolltest.Key, strings.Repeat("s", 129)}
	long.refused("shell", object{"command": "true"}, http.StatusBadRequest, "session")
	if got := s.tool("sandbox_list", object{}, http.StatusOK); len(got["sandboxes"].([]any)) != 0 {
		t.Errorf("what was wrong made %v", got)
	}
}

func TestToolList(t *testing.T) {
	s := shared(t)
	for format, schema := range map[string]string{"": "inputSchema", "?format=mcp": "inputSchema", "?format=anthropic": "input_schema", "?format=openai": "function", "?format=openai-responses": "parameters"} {
		var all []map[string]any
		answer := s.Must(t, atolltest.Key, http.MethodGet, "/v1/tools"+format, nil)
		answer.Into(t, http.StatusOK, &all)
		if len(all) < 8 || all[0][schema] == nil || !bytes.Contains(answer.Body, []byte(`"timeout_ms":{"type":"integer","default":30000}`)) {
			t.Errorf("%s: %s", format, answer.Body)
		}
	}
	for _, format := range []string{"openai", "openai-responses"} {
		answer := s.Must(t, atolltest.Key, http.MethodGet, "/v1/tools?strict=true&format="+format, nil)
		if !bytes.Contains(answer.Body, []byte(`"timeout_ms":{"type":["integer","null"],`)) || !bytes.Contains(answer.Body, []byte(`"strict":true`)) || bytes.Contains(answer.Body, []byte(`"default":`)) {
			t.Errorf("%s: %s", format, answer.Body)
		}
	}
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/tools?format=x", nil).Into(t, http.StatusBadRequest, nil)
}
