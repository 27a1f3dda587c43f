package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestChatWithoutFiles: that files cannot be listed, or not be saved, does not end a conversation.
func TestChatWithoutFiles(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	lists := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/sessions/" + id:
			fmt.Fprint(w, `{"id":"`+id+`","status":"idle"}`)
		case "/v1/sessions/" + id + "/files":
			lists++
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":{"code":"forbidden","message":"no files for this key"}}`)
		default:
			t.Errorf("asked for %s", r.URL)
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	got := atoll(t, "/files\n/files .\n", map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}, "chat", "--session", id, "--base-url", server.URL)
	if got.code != 0 || lists != 2 || strings.Count(got.err, "no files for this key") != 2 || !strings.Contains(got.err, "to go on: atoll chat") {
		t.Errorf("%d lists, %+v", lists, got)
	}
}
