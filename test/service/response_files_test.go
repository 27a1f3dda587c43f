package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// toolStep is a tool call that a message of the user has the model of planner make.
type toolStep struct {
	Tool string `json:"tool"`
	Args any    `json:"args"`
}

// planner is a provider whose model makes the calls that the last message of the user
// lists, one after the other, and then says what the last one gave.
func planner(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		var plan []toolStep
		done, last := 0, ""
		items, _ := r.Body["input"].([]any)
		for _, it := range items {
			switch it := it.(map[string]any); {
			case it["type"] == "function_call_output":
				done, last = done+1, fmt.Sprint(it["output"])
			case it["role"] == "user":
				first := it["content"].([]any)[0].(map[string]any)
				if strings.HasPrefix(first["text"].(string), "[This is from the platform") {
					plan, done, last = nil, 0, "as told"
					continue
				}
				if err := json.NewDecoder(strings.NewReader(first["text"].(string))).Decode(&plan); err != nil { // what follows is the platform's
					t.Errorf("the model was asked %q", first["text"])
					return scriptedmodel.Turn{}, false
				}
				done, last = 0, ""
			}
		}
		if done == len(plan) {
			return scriptedmodel.Say(last), true
		}
		args, err := json.Marshal(plan[done].Args)
		return scriptedmodel.Ask(fmt.Sprintf("call_%d", done), plan[done].Tool, string(args)), err == nil
	}})
	t.Cleanup(p.Close)
	return p
}

// plan is the body of a request that has the model of planner do steps.
func plan(t *testing.T, steps ...toolStep) map[string]any {
	t.Helper()
	text, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"model": "planner", "input": string(text), "tools": []any{map[string]any{"type": "sandbox"}}}
}

// toolItem is an item of a response's output.
type toolItem struct {
	Type, Status, Error             string
	CallID                          string `json:"call_id"`
	FilePath                        string `json:"file_path"`
	FileID                          string `json:"file_id"`
	Filename                        string
	SizeBytes                       int64 `json:"size_bytes"`
	Content                         json.RawMessage
	StartLine                       int64 `json:"start_line"`
	TotalLines                      int64 `json:"total_lines"`
	Message                         string
	Files, Added, Modified, Deleted []string
	Count                           int
	Truncated                       bool
	Results                         []struct {
		Stdout, Stderr, Status string
		ExitCode               int `json:"exit_code"`
	}
}

type toolResponse struct {
	ID, Status string
	Output     []toolItem
	Error      *struct{ Code, Message, Type string }
}

// kind are the items of a type.
func (r *toolResponse) kind(kind string) (all []toolItem) {
	for _, it := range r.Output {
		if it.Type == kind {
			all = append(all, it)
		}
	}
	return all
}

type responseFile struct {
	ID, Object, Filename string
	Bytes                int64
	CreatedAt            int64 `json:"created_at"`
}

func filesOf(t *testing.T, s *atolltest.Server, key, root, id string) []responseFile {
	t.Helper()
	var list struct {
		Object string
		Data   []responseFile
	}
	s.Must(t, key, http.MethodGet, root+"/"+id+"/files", nil).Into(t, http.StatusOK, &list)
	if list.Object != "list" || list.Data == nil {
		t.Errorf("the list is %+v", list)
	}
	return list.Data
}

func bash(code string) toolStep {
	return toolStep{"run_code", map[string]any{"language": "bash", "code": code}}
}

func python1(code string) toolStep {
	return toolStep{"run_code", map[string]any{"language": "python", "code": code}}
}

func share(path string) toolStep { return toolStep{"share_file", map[string]any{"file_path": path}} }

// TestFilesOfAResponse has a model analyse a table into a chart that is shared, mend a
// program, and use every file tool, in a real sandbox.
func TestFilesOfAResponse(t *testing.T) {
	s := shared(t)
	key, foreign := s.Tenant(t, "response-files", "pro"), s.Tenant(t, "response-files-foreign", "pro")
	addModel(t, s, "planner", planner(t).URL)
	t.Cleanup(func() {
		if a, err := s.Call(context.WithoutCancel(t.Context()), s.AdminKey(t), http.MethodDelete, "/v1/admin/models/planner", nil, nil); err != nil || a.Status != http.StatusNoContent {
			t.Errorf("remove the model: %v, %v", a, err)
		}
	})
	create := func(t *testing.T, body map[string]any) *toolResponse {
		t.Helper()
		var r toolResponse
		s.Must(t, key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		if r.Status != "completed" {
			t.Fatalf("the response is %+v", r)
		}
		return &r
	}
	get := func(path string, header http.Header) *atolltest.Answer {
		t.Helper()
		a, err := s.Call(t.Context(), key, http.MethodGet, path, nil, header)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	t.Run("a table becomes a chart", func(t *testing.T) {
		r := create(t, plan(t,
			toolStep{"write_file", map[string]any{"file_path": "sales.csv", "content": "month,sales\n1,10\n2,30\n3,20\n"}},
			python1("import pandas as pd\nimport matplotlib.pyplot as plt\nd = pd.read_csv('sales.csv')\nprint(d.sales.sum())\nd.plot(x='month', y='sales')\nplt.savefig('chart.png')"),
			share("chart.png"),
			toolStep{"read_file", map[string]any{"file_path": "/home/user/sales.csv", "start_line": 2, "end_line": 3}},
		))
		if w := r.kind("sandbox_write_file"); len(w) != 1 || w[0].FilePath != "sales.csv" || w[0].SizeBytes != 27 || w[0].Status != "completed" || w[0].CallID != "call_0" {
			t.Errorf("%+v", w)
		}
		if c := r.kind("sandbox_results"); len(c) != 1 || c[0].Results[0].Stdout != "60\n" {
			t.Errorf("%+v", c)
		}
		if w := r.kind("sandbox_read_file"); len(w) != 1 || string(w[0].Content) != `"1,10\n2,30\n"` || w[0].StartLine != 2 || w[0].TotalLines != 4 {
			t.Errorf("%+v", w)
		}
		shared := r.kind("share_file")
		if len(shared) != 1 || shared[0].Filename != "chart.png" || shared[0].FileID == "" || shared[0].SizeBytes < 1000 {
			t.Fatalf("%+v", shared)
		}
		for _, root := range []string{"/v1/responses", "/v1/agent"} {
			files := filesOf(t, s, key, root, r.ID)
			if len(files) != 1 || files[0].ID != shared[0].FileID || files[0].Object != "file" || files[0].Filename != "chart.png" || files[0].Bytes != shared[0].SizeBytes ||
				time.Since(time.Unix(files[0].CreatedAt, 0)).Abs() > time.Hour {
				t.Errorf("%+v", files)
			}
			content := root + "/" + r.ID + "/files/" + files[0].ID + "/content"
			a := get(content, http.Header{"Accept": {"application/octet-stream"}})
			if a.Status != 200 || int64(len(a.Body)) != files[0].Bytes || !bytes.HasPrefix(a.Body, []byte("\x89PNG")) ||
				a.Header.Get("Content-Type") != "image/png" || a.Header.Get("Content-Disposition") != `attachment; filename="chart.png"` {
				t.Errorf("%d %v, %d bytes", a.Status, a.Header, len(a.Body))
			}
			if part := get(content, http.Header{"Range": {"bytes=1-3"}}); part.Status != 206 || string(part.Body) != "PNG" {
				t.Errorf("%d %q", part.Status, part.Body)
			}
			for _, path := range []string{content, root + "/" + r.ID + "/files"} {
				if a := s.Must(t, foreign, http.MethodGet, path, nil); a.Status != 404 {
					t.Errorf("another tenant gets %d", a.Status)
				}
			}
			for _, path := range []string{root + "/" + r.ID + "/files/file_" + strings.Repeat("0", 36) + "/content", root + "/resp_" + strings.Repeat("0", 32) + "/files"} {
				if a := get(path, nil); a.Status != 404 {
					t.Errorf("%s: %d", path, a.Status)
				}
			}
		}
		// What is deleted is gone, with the executions that had it.
		var listed struct {
			Data []struct {
				TraceID string `json:"trace_id"`
			}
		}
		s.Must(t, key, http.MethodDelete, "/v1/responses/"+r.ID, nil).Into(t, http.StatusOK, nil)
		if a := get("/v1/responses/"+r.ID+"/files/"+shared[0].FileID+"/content", nil); a.Status != 404 {
			t.Errorf("a deleted one: %d", a.Status)
		}
		s.Must(t, key, http.MethodGet, "/v1/executions?limit=100", nil).Into(t, http.StatusOK, &listed)
		if listed.Data == nil || len(listed.Data) != 0 {
			t.Errorf("its executions are there: %+v", listed)
		}
	})

	t.Run("an error is mended", func(t *testing.T) {
		r := create(t, plan(t,
			toolStep{"write_file", map[string]any{"file_path": "src/mean.py", "content": "def mean(xs):\n    return sum(xs) / len(x)\n\nprint(mean([1, 2, 3]))\n"}},
			bash("python3 src/mean.py"),
			toolStep{"grep", map[string]any{"pattern": `len\(x\)`, "include": "*.py"}},
			toolStep{"edit_file", map[string]any{"file_path": "src/mean.py", "old_string": "mean", "new_string": "average"}},
			toolStep{"edit_file", map[string]any{"file_path": "src/mean.py", "old_string": "len(x)", "new_string": "len(xs)"}},
			bash("python3 src/mean.py"),
			toolStep{"apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: src/mean.py\n@@ def mean(xs):\n-    return sum(xs) / len(xs)\n+    return sum(xs) / len(xs) if xs else 0\n*** Add File: src/test.py\n+from mean import mean\n+assert mean([]) == 0\n*** End Patch"}},
			toolStep{"glob", map[string]any{"pattern": "src/*.py"}},
			bash("python3 src/test.py >/dev/null && echo well"),
		))
		runs := r.kind("sandbox_results")
		if len(runs) != 3 || runs[0].Results[0].ExitCode != 1 || !strings.Contains(runs[0].Results[0].Stderr, "NameError") || runs[1].Results[0].Stdout != "2.0\n" || runs[2].Results[0].Stdout != "well\n" {
			t.Errorf("%+v", runs)
		}
		if g := r.kind("sandbox_grep"); len(g) != 1 || !slices.Equal(g[0].Files, []string{"src/mean.py"}) || g[0].Count != 1 {
			t.Errorf("%+v", g)
		}
		edits := r.kind("sandbox_edit_file")
		if len(edits) != 2 || edits[0].Status != "failed" || !strings.Contains(edits[0].Error, "2 times, in lines 1, 4") || edits[1].Status != "completed" || edits[1].Message == "" {
			t.Errorf("%+v", edits)
		}
		if p := r.kind("sandbox_apply_patch"); len(p) != 1 || !slices.Equal(p[0].Added, []string{"src/test.py"}) || !slices.Equal(p[0].Modified, []string{"src/mean.py"}) || p[0].Deleted == nil {
			t.Errorf("%+v", p)
		}
		if g := r.kind("sandbox_glob"); len(g) != 1 || !slices.Equal(g[0].Files, []string{"src/mean.py", "src/test.py"}) {
			t.Errorf("%+v", g)
		}
		// The next response has the same files.
		body := plan(t, toolStep{"read_file", map[string]any{"file_path": "src/test.py"}})
		body["previous_response_id"] = r.ID
		if w := create(t, body).kind("sandbox_read_file"); len(w) != 1 || !strings.Contains(string(w[0].Content), "assert mean") {
			t.Errorf("%+v", w)
		}
	})

	t.Run("many files are shared", func(t *testing.T) {
		r := create(t, plan(t,
			bash("mkdir -p out empty; echo one >out/a.txt; : >none; echo odd >'/tmp/Übung 1.csv'; ln -s out/a.txt link; printf 'x\\ny' >\"$(printf 'new\\nline')\"; head -c 33554433 /dev/zero >big"),
			share("out/a.txt"), bash("echo two >out/a.txt"), share("out/a.txt"), share("none"), share("/tmp/Übung 1.csv"), share("new\nline"),
			share("out"), share("link"), share("missing"), share("big"), share("/etc/shadow"),
		))
		items := r.kind("share_file")
		var got []string
		for _, it := range items {
			got = append(got, it.Status+" "+it.Filename)
		}
		want := []string{"completed a.txt", "completed a.txt", "completed none", "completed Übung 1.csv", "completed new\nline", "failed ", "failed ", "failed ", "failed ", "failed "}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q: %+v", got, items)
		}
		for i, words := range []string{"is a folder", "is a link; share", "no such file", "at most 33554432", ""} {
			if it := items[5+i]; it.Error == "" || !strings.Contains(it.Error, words) || it.FileID != "" {
				t.Errorf("%+v", it)
			}
		}
		files := filesOf(t, s, key, "/v1/responses", r.ID)
		if len(files) != 5 || files[0].ID == files[1].ID {
			t.Fatalf("%+v", files)
		}
		for i, content := range []string{"one\n", "two\n", "", "odd\n", "x\ny"} {
			a := get("/v1/responses/"+r.ID+"/files/"+files[i].ID+"/content", nil)
			if a.Status != 200 || string(a.Body) != content || files[i].Bytes != int64(len(content)) {
				t.Errorf("%+v: %d %q", files[i], a.Status, a.Body)
			}
		}
		disposition := get("/v1/responses/"+r.ID+"/files/"+files[3].ID+"/content", nil).Header.Get("Content-Disposition")
		if disposition != `attachment; filename="__bung 1.csv"; filename*=UTF-8''%C3%9Cbung%201.csv` {
			t.Errorf("got %s", disposition)
		}
	})

	t.Run("in the time of a tool", func(t *testing.T) {
		steps := []toolStep{bash("true"), {"write_file", map[string]any{"file_path": "f", "content": strings.Repeat("line\n", 1000)}}}
		const n = 20
		for range n {
			steps = append(steps, toolStep{"read_file", map[string]any{"file_path": "f"}})
		}
		began := time.Now()
		r := create(t, plan(t, steps...))
		if got := r.kind("sandbox_read_file"); len(got) != n || got[0].TotalLines != 1000 {
			t.Errorf("%d", len(got))
		}
		var listed struct {
			Data []struct {
				DurationMS int64 `json:"duration_ms"`
				Metadata   map[string]string
			}
		}
		s.Must(t, key, http.MethodGet, "/v1/executions?limit=20", nil).Into(t, http.StatusOK, &listed)
		took := time.Since(began)
		var each []int64
		for _, e := range listed.Data {
			if each = append(each, e.DurationMS); e.Metadata["tool"] != "sandbox_read_file" {
				t.Errorf("%+v", e)
			}
		}
		t.Logf("a response of %d calls took %s; ms of the last executions: %v", n+2, took, each)
	})
}

// TestSharedFileIsOneAfterKills kills the server while a file is shared: the response ends
// with one file, which is whole, and no call was made twice.
func TestSharedFileIsOneAfterKills(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	addModel(t, line.now(), "planner", planner(t).URL)
	const size = 30 << 20
	body := plan(t, bash(fmt.Sprintf("echo once >>log; yes | head -c %d >big.txt; cat log", size)), share("big.txt"), bash("echo twice >>log; cat log"))
	body["background"] = true
	n := atolltest.Count(2, 20)
	for i := range n {
		var r toolResponse
		line.now().Must(t, atolltest.Key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		id := r.ID
		read := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				s := line.now()
				a, err := s.Call(ctx, atolltest.Key, http.MethodGet, "/v1/responses/"+id, nil, nil)
				if err == nil && a.Status == http.StatusOK {
					r = toolResponse{}
					a.Into(t, http.StatusOK, &r)
					return true
				}
				if line.again(ctx, s) != nil {
					t.Fatalf("no answer: %v", err)
				}
			}
		}
		atolltest.Until(t, time.Minute, "the file is being shared", func() bool { return read() && len(r.kind("share_file")) == 1 })
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond) // any moment of it
		line.next(syscall.SIGKILL)
		atolltest.Until(t, 2*time.Minute, "the response has already ended", func() bool { return read() && r.Status != "in_progress" && r.Status != "queued" })
		items, runs := r.kind("share_file"), r.kind("sandbox_results")
		if r.Status != "completed" || len(items) != 1 || items[0].Status != "completed" || items[0].SizeBytes != size || len(runs) != 2 || runs[1].Results[0].Stdout != "once\ntwice\n" {
			t.Fatalf("round %d: the response is %+v\n%s", i, r, line.now().Log())
		}
		s := line.now()
		files := filesOf(t, s, atolltest.Key, "/v1/responses", id)
		if len(files) != 1 || files[0].Bytes != size {
			t.Fatalf("round %d: %+v", i, files)
		}
		if a := s.Must(t, atolltest.Key, http.MethodGet, "/v1/responses/"+id+"/files/"+files[0].ID+"/content", nil); a.Status != 200 || len(a.Body) != size || !bytes.HasPrefix(a.Body, []byte("y\ny\n")) {
			t.Errorf("round %d: %d, %d bytes", i, a.Status, len(a.Body))
		}
	}
}
