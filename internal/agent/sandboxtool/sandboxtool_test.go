package sandboxtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/loop/looptest"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// world is a gateway whose executions end as the test says.
type world struct {
	end execution.Execution
	err error
	of  run.Request

	asked execution.Request
	call  gateway.Call
	ended string // key of the execution that was ended
	none  bool   // there is none
	made  bool   // a sandbox was
	file  []byte // that the executions give back
	said  []model.Item

	services []string
	scopes   []tenant.Scope
}

func (w *world) Policy(*tenant.Principal) execution.Policy {
	return execution.Policy{MaxTimeout: 10 * time.Second}
}

func (w *world) Execute(_ context.Context, _ *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error) {
	w.asked, w.call = req, c
	e := w.end
	e.TraceID, e.Timeout = req.TraceID, req.Timeout
	return &e, w.err
}

type closing struct{ io.ReadSeeker }

func (closing) Close() error { return nil }

func (w *world) Shown(_ context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error) {
	return w.Whole(context.Background(), e, s)
}

func (w *world) Whole(_ context.Context, e *execution.Execution, s execution.Stream) (io.ReadSeekCloser, error) {
	out := e.Stdout
	if s == execution.Stderr {
		out = e.Stderr
	}
	return closing{bytes.NewReader(out)}, nil
}

func (w *world) File(_ context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error) {
	if _, _, ok := e.Files.Find(name); !ok {
		return nil, fault.New(fault.NotFound, "there is no file %s", name)
	}
	return closing{bytes.NewReader(w.file)}, nil
}

func (w *world) EndKeyed(_ context.Context, _ tenant.ID, key string) (*execution.Execution, error) {
	if w.ended = key; w.none {
		return nil, nil
	}
	return &w.end, nil
}

func (w *world) Entrant(context.Context, tenant.ID, string, string) (tenant.Principal, error) {
	return tenant.Principal{Key: tenant.Key{Scopes: w.scopes}}, nil
}

func (w *world) Made(context.Context, string, string, time.Time, time.Time) (bool, error) {
	return w.made, nil
}

func (w *world) Calls(context.Context, string, string, time.Time, time.Time) (map[string]int, error) {
	return map[string]int{"web_search": 2, "fetch_url": 1, "response": 1}, nil
}

func (w *world) do(t *testing.T, tool, arguments string) (out *loop.Outcome, rejected error) {
	t.Helper()
	return looptest.Do(t, &Sandbox{Runner: w, Callers: w, Ledger: w, Services: w.services}, looptest.Call(&w.of, w.said, tool, arguments))
}

func TestFileTools(t *testing.T) {
	for _, c := range []struct{ tool, arguments, call, stdout, told, use string }{
		{
			"write_file", `{"file_path": "a", "content": "x\u0000"}`, `{"op":"write","path":"a","content":"x\u0000"}`, "{\"bytes\":2,\"created\":true}\n",
			"Created a with 2 bytes.", `"size":2`,
		},
		{
			"read_file", `{"file_path": "a", "start_line": 2, "end_line": 3.0}`, `{"op":"read","path":"a","from":2,"to":3}`, "{\"from\":2,\"to\":3,\"lines\":9,\"truncated\":true}\nb\nc",
			"a, lines 2 to 3 of 9:\nb\nc\n[cut; the next lines begin at start_line 4]", `"content":"b\nc","from":2,"lines":9`,
		},
		{"read_file", `{"file_path": "a"}`, `{"op":"read","path":"a"}`, "{}\n", "a is empty.", `"content":""`},
		{
			"edit_file", `{"file_path": "a", "old_string": "x", "new_string": "", "replace_all": true}`, `{"op":"edit","path":"a","old":"x","all":true}`, "{\"count\":3}\n",
			"Replaced the text in a in 3 places.", `"message":"Replaced`,
		},
		{
			"grep", `{"pattern": "x", "ignore_case": true}`, `{"op":"grep","pattern":"x","fold":true}`, "{\"count\":1,\"paths\":1}\na\na\n1:x\n",
			"a\n1:x\n", `"files":["a"],"count":1`,
		},
		{"grep", `{"pattern": "x", "path": "d", "include": "*.py"}`, `{"op":"grep","path":"d","pattern":"x","include":"*.py"}`, "{}\n", "No line matches.", `"count":0`},
		{"glob", `{"pattern": "*"}`, `{"op":"glob","pattern":"*"}`, "{\"count\":2,\"paths\":2,\"truncated\":true}\na\nb\n", "a\nb\n[there are more; narrow the pattern]", `"files":["a","b"],"count":2,"truncated":true`},
		{"apply_patch", `{"patch": "p"}`, `{"op":"patch","patch":"p"}`, "{\"paths\":2}\nA a b\nD c\n", "Done. Added (A), modified (M) and deleted (D):\nA a b\nD c", `"added":["a b"],"deleted":["c"]`},
	} {
		w := &world{end: looptest.Ended(execution.Success, c.stdout)}
		out, err := w.do(t, c.tool, c.arguments)
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
			continue
		}
		if w.asked.Code != c.call || !w.asked.Tool || w.asked.Timeout != 10*time.Second || w.asked.Metadata["tool"] != out.Item.Use.Tool {
			t.Errorf("%s: asked for %+v", c.tool, w.asked)
		}
		if looptest.Text(out) != c.told || out.Result.Failed || out.Item.Status != run.ItemCompleted || !strings.Contains(string(out.Item.Use.Output), c.use) || out.Windows != 1 {
			t.Errorf("%s: told %q, shown %s", c.tool, looptest.Text(out), out.Item.Use.Output)
		}
		if w.call.IdempotencyKey != "run_"+strings.Repeat("a", 32)+"/7" || w.call.Turn != "sbx_1" || w.call.Window != 20*time.Minute || w.call.Run == "" {
			t.Errorf("%s: called as %+v", c.tool, w.call)
		}
	}
}

func TestShareFile(t *testing.T) {
	for path, want := range map[string][2]string{ // what is collected, and its name for the user
		"a.csv": {"a.csv", "a.csv"}, "./out//b.csv": {"out/b.csv", "b.csv"}, "/home/user/out/c": {"out/c", "c"},
		"/tmp/d": {".atoll/shared", "d"}, "../e": {".atoll/shared", "e"}, "new\nline": {".atoll/shared", "new\nline"}, "/home/user": {".atoll/shared", "user"},
	} {
		arguments, _ := json.Marshal(map[string]string{"file_path": path})
		w := &world{end: looptest.Ended(execution.Success, "{\"bytes\":4}\n")}
		w.end.Files.Files = []execution.OutputFile{{Name: want[0], Bytes: 3}} // a secret is left out
		out, err := w.do(t, "share_file", string(arguments))
		if err != nil {
			t.Fatal(err)
		}
		u, err := ReadUse(out.Item.Use.Output)
		if err != nil || len(w.asked.Outputs) != 1 || w.asked.Outputs[0] != want[0] || u.Name != want[1] || *u.Size != 3 ||
			u.FileID != "file_"+strings.Repeat("a", 32)+"0007" || u.Stored != want[0] || u.Execution != w.asked.TraceID || u.CreatedAt != 1_700_000_000 {
			t.Errorf("%q: %v, %+v, outputs %q", path, err, u, w.asked.Outputs)
		}
		s := &run.State{Output: []run.Item{*out.Item, {Status: run.ItemFailed, Use: out.Item.Use}, {Status: run.ItemCompleted, Code: &run.CodeRun{}}}}
		if files, err := Shared(s); err != nil || len(files) != 1 || files[0].FileID != u.FileID {
			t.Errorf("%q: %v, %+v", path, err, files)
		}
		for _, files := range [][]execution.OutputFile{nil, {{Name: "other"}}, {{Name: want[0]}, {Name: "other"}}} {
			w.end.Files.Files = files
			if out, _ := w.do(t, "share_file", string(arguments)); !out.Result.Failed || out.Item.Status != run.ItemFailed || !strings.Contains(out.Item.Use.Error, "could not be kept") {
				t.Errorf("%q with %v: %+v", path, files, out.Item.Use)
			}
		}
	}
}

// TestHostileAnswers: a sandbox that answers with anything else is a failure of the call.
func TestHostileAnswers(t *testing.T) {
	for _, c := range []struct {
		status execution.Status
		stdout string
		item   run.ItemStatus
		why    string
	}{
		{execution.Success, "", run.ItemFailed, "could not complete the call"},
		{execution.Success, "{\"paths\":9}\n", run.ItemFailed, "could not complete the call"},
		{execution.Success, strings.Repeat("x", 2*filetool.MaxAnswer), run.ItemFailed, "could not complete the call"},
		{execution.Failed, "{\"count\":1}\n", run.ItemFailed, "could not complete the call"},
		{execution.Failed, "{\"failed\":true}\nno such \xff", run.ItemFailed, "no such \uFFFD"},
		{execution.Success, "{\"failed\":true}\nno", run.ItemFailed, "no"},
		{execution.Timeout, "", run.ItemTimedOut, "longer than 10s"},
		{execution.OOM, "", run.ItemFailed, "could not complete the call"},
	} {
		w := &world{end: looptest.Ended(c.status, c.stdout)}
		out, err := w.do(t, "glob", `{"pattern": "*"}`)
		if err != nil || out.Item.Status != c.item || !out.Result.Failed || !strings.Contains(out.Item.Use.Error, c.why) || !strings.Contains(looptest.Text(out), c.why) {
			t.Errorf("%s %.40q: %v, %+v, told %q", c.status, c.stdout, err, out.Item, looptest.Text(out))
		}
	}
}

func TestInputsAreChecked(t *testing.T) {
	for tool, cases := range map[string]map[string]string{
		"none":        {`{}`: "no tool"},
		"write_file":  {`{"file_path": "a"}`: "content is required", `{"content": "a"}`: "file_path is required", `{"file_path": "", "content": ""}`: "file_path", `{"file_path": "` + strings.Repeat("a", 5000) + `", "content": ""}`: "4096 bytes", `{"file_path": "a", "content": "` + strings.Repeat("a", execution.MaxCode) + `"}`: "1 MB"},
		"read_file":   {`{"file_path": "a", "start_line": "x"}`: "start_line", `{"file_path": "a\u0000b"}`: "NUL"},
		"edit_file":   {`{"file_path": "a", "old_string": "", "new_string": "x"}`: "old_string"},
		"grep":        {`{}`: "pattern is required"},
		"glob":        {`{"pattern": 1}`: "pattern"},
		"apply_patch": {`[]`: "JSON object", `{"input": "x"}`: `unknown field "input"`},
		"share_file":  {`{"path": "x"}`: "unknown field"},
		RunCode:       {`{"language": "python", "code": "1", "timeout": 0.5}`: "whole number"},
	} {
		for arguments, words := range cases {
			if _, err := (&world{}).do(t, tool, arguments); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s %.60s: %v, want %q", tool, arguments, err, words)
			}
		}
	}
}

// TestUses: services that the code called are charged beside the call.
func TestUses(t *testing.T) {
	w := &world{end: looptest.Ended(execution.Success, ""), services: []string{"web_search"}, scopes: []tenant.Scope{tenant.ScopeTools}}
	if out, err := w.do(t, RunCode, `{"language": "python", "code": "1"}`); err != nil || len(out.Uses) != 2 || out.Uses["web_search"] != 2 || out.Uses["fetch_url"] != 1 || out.Refused {
		t.Errorf("got %+v, %v", out, err)
	}
	if !w.call.Web {
		t.Error("code cannot call the services")
	}
	for name, less := range map[string]*world{"without services": {end: w.end, scopes: w.scopes}, "without the scope": {end: w.end, services: w.services}} {
		if _, err := less.do(t, RunCode, `{"language": "python", "code": "1"}`); err != nil || less.call.Web {
			t.Errorf("%s code gets an address for them; %v", name, err)
		}
	}
	w.of.NoWeb = true
	if _, err := w.do(t, RunCode, `{"language": "python", "code": "1"}`); err != nil || w.call.Web {
		t.Errorf("code can call the services although it must not; %v", err)
	}
}

// TestRefusals: a quota that is used up ends the run, and what the model can help does not.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err  error
		ends bool
	}{
		{fault.Limit("monthly_credits", time.Time{}, "monthly budget used up"), true},
		{fault.Limit("outputs", time.Time{}, "stored outputs use all"), true},
		{fault.Limit("concurrency", time.Time{}, "concurrent execution limit reached"), false},
		{fault.Limit("timeout", time.Time{}, "timeout exceeds"), false},
		{fault.New(fault.Forbidden, "no environment"), false},
	} {
		for tool, arguments := range map[string]string{RunCode: `{"language": "python", "code": "1"}`, "glob": `{"pattern": "*"}`} {
			out, err := (&world{err: c.err}).do(t, tool, arguments)
			if err != nil || !out.Result.Failed || !out.Refused || out.Item.Status != run.ItemFailed || !strings.Contains(looptest.Text(out), c.err.Error()) {
				t.Fatalf("%s, %v: %v, %+v", tool, c.err, err, out)
			}
			if (out.Ends != nil) != c.ends || c.ends && (out.Ends.Status != run.Failed || out.Ends.Reason != run.QuotaExceeded || out.Ends.Message != c.err.Error()) {
				t.Errorf("%s, %v: ends with %+v", tool, c.err, out.Ends)
			}
		}
	}
}

// TestEnd: a call of a process that is gone is ended by its key, and charged for what it used.
func TestEnd(t *testing.T) {
	w := &world{end: execution.Execution{Status: execution.Cancelled, Windows: 1}}
	s := &Sandbox{Runner: w, Callers: w, Ledger: w, Services: w.services}
	c := &loop.Call{Run: &run.Run{ID: run.ID("run_" + strings.Repeat("a", 32))}, Number: 7, Begun: true}
	out, err := s.End(t.Context(), c)
	if err != nil || out.Windows != 1 || out.Uses["web_search"] != 2 || out.Uses["response"] != 0 || w.ended != string(c.Run.ID)+"/7" {
		t.Errorf("%+v, %v; ended %q", out, err, w.ended)
	}
	w.none = true
	if out, err := s.End(t.Context(), c); out != nil || err != nil {
		t.Errorf("of a call that did not begin: %+v, %v", out, err)
	}
}

// ending is a context that has ended when it is looked at for the second time.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks++; e.looks < 2 {
		return nil
	}
	return context.Canceled
}

// TestEndsWithItsRun: a call whose run ends as its program has ended is charged for what it
// used, and has no outcome: who goes on with the run collects it by its key.
func TestEndsWithItsRun(t *testing.T) {
	w := &world{end: looptest.Ended(execution.Success, "42\n")}
	s := &Sandbox{Runner: w, Callers: w, Ledger: w, Services: w.services}
	c := &loop.Call{Run: &run.Run{ID: run.ID("run_" + strings.Repeat("a", 32)), Sandbox: "sbx_1"}, Number: 7, Request: &w.of, Call: model.Call{ID: "call_1", Name: RunCode, Arguments: `{"language": "python", "code": "1"}`}}
	var err error
	if c.Item, err = s.Show(c); err != nil {
		t.Fatal(err)
	}
	out, err := s.Do(&ending{Context: t.Context()}, c)
	if !errors.Is(err, context.Canceled) || out == nil || out.Windows != 1 || out.Uses["web_search"] != 2 {
		t.Errorf("got %+v, %v", out, err)
	}
}
