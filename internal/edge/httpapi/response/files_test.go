package response_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestFileItems: the file tools show as items of their own, streamed or not, and a file that
// was shared is there until its response is deleted.
func TestFileItems(t *testing.T) {
	s := open(t)
	// Calls are JSON without spaces, so they name the programs.
	s.World.Executor.Program(`{"op":"read","path":"f"}`, func(r *gatewaytest.Run) int {
		r.Print(execution.Stdout, "{\"from\":1,\"to\":1,\"lines\":1}\nline\n")
		return 0
	})
	s.World.Executor.Program(`{"op":"read","path":"g"}`, func(r *gatewaytest.Run) int {
		r.Print(execution.Stdout, "{\"failed\":true}\ng: no such file or folder")
		return 1
	})
	s.World.Executor.Program(`{"op":"share","path":"f.csv"}`, func(r *gatewaytest.Run) int {
		r.Print(execution.Stdout, "{\"bytes\":4}\n")
		if err := s.World.Blobs.Put(t.Context(), execution.FilesName(r.Tenant, r.TraceID), strings.NewReader("a,b\n")); err != nil {
			t.Error(err)
		}
		r.Result = &execution.Result{Status: execution.Success, Files: execution.OutputFiles{Files: []execution.OutputFile{{Name: "f.csv", Bytes: 4}}}}
		return 0
	})
	const body = `{"model": "files", "input": %q, "tools": [{"type": "sandbox"}], "stream": true}`
	stream := func(input string) (added, done, response map[string]any) {
		for _, e := range events(t, httpapitest.Ask(s, "POST", "/v1/responses", fmt.Sprintf(body, input))) {
			it, _ := e["item"].(map[string]any)
			switch {
			case it["type"] == "message":
			case e["type"] == "response.output_item.added":
				added = it
			case e["type"] == "response.output_item.done":
				done = it
			case e["type"] == "response.completed":
				response = e["response"].(map[string]any)
			}
		}
		return added, done, response
	}
	for input, want := range map[string][2]string{
		`read_file {"file_path": "f"}`: {
			`{"call_id":"call_1","file_path":"f","status":"in_progress","type":"sandbox_read_file"}`,
			`{"call_id":"call_1","content":"line\n","file_path":"f","start_line":1,"status":"completed","total_lines":1,"type":"sandbox_read_file"}`,
		},
		`read_file {"file_path": "g"}`: {
			`{"call_id":"call_1","file_path":"g","status":"in_progress","type":"sandbox_read_file"}`,
			`{"call_id":"call_1","error":"g: no such file or folder","file_path":"g","status":"failed","type":"sandbox_read_file"}`,
		},
		`share_file {"file_path": "f.csv"}`: {
			`{"call_id":"call_1","status":"in_progress","type":"share_file"}`,
			`{"call_id":"call_1","file_id":"FILE","filename":"f.csv","size_bytes":4,"status":"completed","type":"share_file"}`,
		},
	} {
		added, done, r := stream(input)
		if r == nil || added["id"] == nil || added["id"] != done["id"] {
			t.Fatalf("%s: %s, %s, %s", input, show(added), show(done), show(r))
		}
		if got := r["output"].([]any)[0].(map[string]any); show(got) != show(done) {
			t.Errorf("the response has %s", show(got))
		}
		id := r["id"].(string)
		files := ask(t, s, 200, "GET", "/v1/responses/"+id+"/files", "")["data"].([]any)
		if file, ok := done["file_id"].(string); ok {
			want[1] = strings.Replace(want[1], "FILE", file, 1)
			if len(files) != 1 || files[0].(map[string]any)["id"] != file {
				t.Fatalf("the list is %s", show(files))
			}
			w := httpapitest.Ask(s, "GET", "/v1/agent/"+id+"/files/"+file+"/content", "")
			if w.Code != 200 || w.Body.String() != "a,b\n" || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			goes(t, s, id, file)
		} else if len(files) != 0 {
			t.Errorf("the list is %s", show(files))
		}
		delete(added, "id")
		delete(done, "id")
		if show(added) != want[0] || show(done) != want[1] {
			t.Errorf("%s: %s\n%s", input, show(added), show(done))
		}
	}
}

// goes checks that a file goes with its response, and is nothing to other tenants before.
func goes(t *testing.T, s *httpapitest.Server, id, file string) {
	t.Helper()
	foreign := stranger(t, s)
	content := "/v1/responses/" + id + "/files/" + file + "/content"
	answers := func(key string) (got []*httptest.ResponseRecorder) {
		for _, path := range []string{content, "/v1/responses/" + id + "/files"} {
			got = append(got, httpapitest.Ask(s, "GET", path, "", "Authorization", "Bearer "+key))
		}
		return got
	}
	for _, w := range answers(foreign) {
		none := httpapitest.Ask(s, "GET", "/v1/responses/resp_00000000000000000000000000000000/files", "")
		if w.Code != 404 || strings.ReplaceAll(w.Body.String(), id, "resp_"+strings.Repeat("0", 32)) != none.Body.String() {
			t.Errorf("another tenant gets %d %s", w.Code, w.Body)
		}
	}
	ask(t, s, 404, "GET", strings.Replace(content, file, file[:len(file)-1]+"f", 1), "")
	ask(t, s, 404, "GET", strings.Replace(content, file, "x", 1), "")
	var tenant, trace string
	const find = `SELECT tenant, trace_id FROM executions WHERE files <> ''`
	if err := s.DB.SQL().QueryRow(find).Scan(&tenant, &trace); err != nil {
		t.Fatal(err)
	}
	ask(t, s, 200, "DELETE", "/v1/responses/"+id, "")
	ask(t, s, 404, "GET", content, "")
	if err := s.DB.SQL().QueryRow(find).Scan(&tenant, &trace); err == nil {
		t.Error("its execution is on record")
	}
	if n, err := s.World.Blobs.Size(t.Context(), execution.FilesName(tenant, trace)); err == nil {
		t.Errorf("%d bytes of it are left", n)
	}
}
