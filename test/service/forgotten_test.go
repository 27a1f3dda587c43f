package service

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestResponsesAreForgotten looks for what a response was about in all that its server has
// on disk: it is never there in clear, and of one that was deleted, or was not to be kept,
// the ledger and the audit trail are left.
func TestResponsesAreForgotten(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_MODEL_ALLOW=127.0.0.1"}})
	data := s.Keep(t)
	provider := obedient(t)
	admin, key := s.AdminKey(t), s.Tenant(t, "forgotten", "pro")
	addModel(t, s, "scripted", provider.URL)

	const secret = "zanzibar-4711"
	about := func(settings map[string]any) map[string]any {
		body := map[string]any{"model": "scripted", "input": "run what = '" + secret + "'; print(len(what))", "tools": []any{map[string]any{"type": "sandbox"}}}
		for name, value := range settings {
			body[name] = value
		}
		return body
	}
	executions := func() (n int) {
		var page struct{ Data []json.RawMessage }
		s.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusOK, &page)
		return len(page.Data)
	}

	var kept struct{ ID, Status string }
	s.Must(t, key, http.MethodPost, "/v1/responses", about(nil)).Into(t, http.StatusOK, &kept)
	streamed := s.Must(t, key, http.MethodPost, "/v1/responses", about(map[string]any{"stream": true}))
	if !strings.Contains(string(streamed.Body), `"response.completed"`) || kept.Status != "completed" {
		t.Fatalf("got %+v and %s", kept, streamed.Body)
	}
	if n := executions(); n != 2 {
		t.Errorf("%d executions, want 2", n)
	}
	nowhere(t, data, secret)

	for _, line := range strings.Split(string(streamed.Body), "\n") {
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			var e struct{ Response struct{ ID string } }
			if err := json.Unmarshal([]byte(text), &e); err == nil && e.Response.ID != "" {
				s.Must(t, key, http.MethodDelete, "/v1/responses/"+e.Response.ID, nil).Into(t, http.StatusOK, new(map[string]any))
				break
			}
		}
	}
	s.Must(t, key, http.MethodDelete, "/v1/responses/"+kept.ID, nil).Into(t, http.StatusOK, new(map[string]any))
	var unkept struct{ ID, Status string }
	s.Must(t, key, http.MethodPost, "/v1/responses", about(map[string]any{"store": false})).Into(t, http.StatusOK, &unkept)
	if n := executions(); n != 0 {
		t.Errorf("%d executions are left", n)
	}
	nowhere(t, data, secret)

	var used struct {
		Days []struct {
			Source, Name string
			Calls        int
		}
	}
	s.Must(t, key, http.MethodGet, "/v1/usage", nil).Into(t, http.StatusOK, &used)
	calls := map[string]int{}
	for _, d := range used.Days {
		calls[d.Source+" "+d.Name] += d.Calls
	}
	if calls["response "] != 3 || calls["model scripted"] != 6 || calls["tool sandbox"] != 3 || calls["sandbox_window "] != 3 {
		t.Errorf("the ledger has %v", calls)
	}
	var trail struct {
		Data []struct {
			Source   string
			CodeHash string `json:"executed_code_hash"`
			Metadata map[string]string
		}
	}
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/forgotten/audit", nil).Into(t, http.StatusOK, &trail)
	rows := map[string]int{}
	for _, r := range trail.Data {
		rows[r.Source]++
		if len(r.CodeHash) != 64 || strings.Trim(r.CodeHash, "0") == "" || r.Source == "model" && (r.Metadata["run"] == "" || len(r.Metadata["answer_sha256"]) != 64) {
			t.Errorf("got %+v", r)
		}
	}
	if rows["model"] != 6 || rows["response"] != 3 {
		t.Errorf("the trail has %v", rows)
	}
	if err := s.Close(); err != nil { // what was in memory is on disk now
		t.Fatal(err)
	}
	nowhere(t, data, secret)
}

// nowhere fails for a file of a folder that has a text.
func nowhere(t *testing.T, folder, text string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(folder, "images")) {
			return nil // gone meanwhile; images are shared, and older
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		if files++; bytes.Contains(b, []byte(text)) {
			t.Errorf("%s has it", path)
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}
