package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestFiles drives Anthropic's client through all that it knows of files: in messages, in the
// sandboxes of sessions, and those that agents share.
func TestFiles(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "files", "enterprise")
	lendModel(t, s, "filed", planner(t).URL, "tools")
	out := python(t, filepath.Join("clients", "files_client.py"), "ATOLL_URL="+s.URL, "ATOLL_KEY="+key)
	if said := strings.Join(strings.Fields(out), " "); said != "upload list resources message shared refused" {
		t.Errorf("it said %q", said)
	}
}

// TestFileInNamedSandbox: the named sandbox of a session has a file that is larger than any
// message, and another tenant's session does not.
func TestFileInNamedSandbox(t *testing.T) {
	s := shared(t)
	key, other := s.Tenant(t, "filer", "enterprise"), s.Tenant(t, "stranger", "enterprise")
	lendModel(t, s, "filer", planner(t).URL, "tools")
	data := make([]byte, 20<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	f := form(t, "big.bin", string(data))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/files", bytes.NewReader(f.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", f.media)
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var file struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&file); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	session := func(key, tool string, status int) (path, said string) {
		var agent, made struct{ ID string }
		s.Must(t, key, http.MethodPost, "/v1/agents", map[string]any{"name": "A", "model": map[string]string{"name": "filer"}, "tools": []any{map[string]string{"type": tool}}}).Into(t, http.StatusCreated, &agent)
		a := s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID, "mounts": []any{map[string]string{"type": "file", "file_id": file.ID}}})
		if a.Status != status {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		_ = json.Unmarshal(a.Body, &made)
		return "/v1/sessions/" + made.ID, string(a.Body)
	}
	if _, said := session(other, "sandboxes", http.StatusBadRequest); !strings.Contains(said, "mounts[0].file_id: file not found") {
		t.Errorf("another tenant's: %s", said)
	}
	if _, said := session(key, "sandbox", http.StatusBadRequest); !strings.Contains(said, "at most 8388608 bytes") {
		t.Errorf("without named sandboxes: %s", said)
	}
	at, _ := session(key, "sandboxes", http.StatusCreated)
	steps, err := json.Marshal([]toolStep{{"shell", map[string]any{"command": "python3 -c \"import zlib; print(zlib.crc32(open('uploads/" + file.ID + "','rb').read()))\""}}})
	if err != nil {
		t.Fatal(err)
	}
	var turn struct{ Content string }
	s.Must(t, key, http.MethodPost, at+"/events", map[string]string{"type": "message", "content": string(steps)}).Into(t, http.StatusOK, &turn)
	if !strings.Contains(turn.Content, fmt.Sprint(crc32.ChecksumIEEE(data))) {
		t.Errorf("it says %q", turn.Content)
	}
}
