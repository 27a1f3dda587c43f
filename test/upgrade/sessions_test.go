package upgrade

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// dataFile has the data folder of a server that was stopped: its database, keys and blobs.
const dataFile = "data.tar.zst"

// keyFile is where the folder has the key that all was made with.
const keyFile = "test-key"

// Of the data folder: what each server makes for itself, or tests put there.
var transient = []string{"images", "state", "tmp"}

// talk is a server with what people have of it.
type talk struct {
	*testing.T
	*atolltest.Server
	key string
}

func (k *talk) do(method, path string, body any, status int, into any) {
	k.Helper()
	k.Must(k.T, k.key, method, path, body).Into(k.T, status, into)
}

// saidIn is what the newest message of the user is in a request, and whether a call after it has
// a result.
func saidIn(body map[string]any) (said string, called bool) {
	items, _ := body["input"].([]any)
	for _, it := range items {
		switch it := it.(map[string]any); {
		case it["type"] == "function_call_output":
			called = true
		case it["role"] == "user":
			if parts, ok := it["content"].([]any); ok && len(parts) > 0 {
				said, called = fmt.Sprint(parts[0].(map[string]any)["text"]), false
			}
		}
	}
	return said, called
}

// serve starts a server on a data folder, with the model that the agents use.
func serve(t *testing.T, data string) *talk {
	t.Helper()
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, called := saidIn(r.Body)
		if said == "hand on" && !called {
			return scriptedmodel.Ask("call_1", "handoff_to_worker", `{"task":"the task"}`), true
		}
		items, _ := json.Marshal(r.Body["input"])
		return scriptedmodel.Say(fmt.Sprintf("%s, after %d times hello", said, strings.Count(string(items), "hello there"))), true
	}})
	t.Cleanup(p.Close)
	s := atolltest.Start(t, atolltest.Options{Data: data, Env: []string{"ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_POOL_SIZE=0"}})
	admin := s.AdminKey(t)
	var key struct{ Key string }
	if data == "" {
		s.Tenant(t, "kept", "enterprise")
		wide := map[string]any{"name": "wide", "environment": "main", "scopes": []string{"execute", "read", "tools", "environments"}}
		s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/kept/keys", wide).Into(t, http.StatusCreated, &key)
		if err := os.WriteFile(filepath.Join(s.Data, keyFile), []byte(key.Key), 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		key.Key = string(read(t, filepath.Join(data, keyFile)))
		s.Must(t, admin, http.MethodDelete, "/v1/admin/models/scripted", nil).Into(t, http.StatusNoContent, nil)
	}
	model := map[string]any{"name": "scripted", "provider": "openai", "base_url": p.URL + "/v1", "capabilities": []string{"tools"}}
	s.Must(t, admin, http.MethodPost, "/v1/admin/models", model).Into(t, http.StatusCreated, nil)
	return &talk{t, s, key.Key}
}

type made struct {
	ID      string
	Version int
	Status  string
	Content string
}

// fillTalk makes one of each thing that agents have.
func fillTalk(k *talk) {
	var worker, lead, vault, session made
	scripted := map[string]string{"name": "scripted"}
	k.do(http.MethodPost, "/v1/agents", map[string]any{"name": "Worker", "slug": "worker", "model": scripted}, http.StatusCreated, &worker)
	k.do(http.MethodPost, "/v1/agents", map[string]any{"name": "Lead", "slug": "lead", "system": "the first version", "model": scripted, "handoffs": []any{map[string]string{"agent_id": worker.ID, "name": "Worker"}}}, http.StatusCreated, &lead)
	k.do(http.MethodPost, "/v1/vaults", map[string]any{"display_name": "the vault"}, http.StatusCreated, &vault)
	k.do(http.MethodPost, "/v1/vaults/"+vault.ID+"/credentials", map[string]any{"auth": map[string]any{"type": "static_bearer", "mcp_server_url": "https://mcp.example.com/mcp", "token": "a-token-of-a-server"}}, http.StatusCreated, nil)
	k.do(http.MethodPost, "/v1/sessions", map[string]any{"agent_id": lead.ID, "title": "the session", "vault_ids": []string{vault.ID}}, http.StatusCreated, &session)
	k.do(http.MethodPatch, "/v1/agents/"+lead.ID, map[string]any{"system": "the second version", "version": 1}, http.StatusOK, &lead)
	if lead.Version != 2 {
		k.Errorf("the agent is %+v", lead)
	}
	for _, text := range []string{"hello there", "hand on"} {
		var turn made
		if k.do(http.MethodPost, "/v1/sessions/"+session.ID+"/events", map[string]any{"type": "message", "content": text}, http.StatusOK, &turn); turn.Status != "completed" {
			k.Errorf("the turn is %+v", turn)
		}
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "notes.txt")
	if err == nil {
		_, err = io.WriteString(part, "what was uploaded")
	}
	if err != nil || form.Close() != nil {
		k.Fatal(err)
	}
	r, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.URL+"/v1/files", &body)
	if err != nil {
		k.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + k.key}, "Content-Type": {form.FormDataContentType()}}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		k.Fatal(err)
	}
	defer a.Body.Close()
	if text, _ := io.ReadAll(a.Body); a.StatusCode >= 300 {
		k.Fatalf("the file is refused: %d %s", a.StatusCode, text)
	}
}

// checkTalk reads what fillTalk made, and goes on with it.
func checkTalk(k *talk) {
	has := func(path string, want ...string) {
		k.Helper()
		a := k.Must(k.T, k.key, http.MethodGet, path, nil)
		for _, text := range want {
			if a.Status != http.StatusOK || !strings.Contains(string(a.Body), text) {
				k.Errorf("%s lacks %q: %d %.2000s", path, text, a.Status, a.Body)
			}
		}
	}
	var sessions, vaults, threads, files struct{ Data []made }
	has("/v1/agents/lead", `"version":2`, "the second version")
	has("/v1/agents/lead/versions", "the first version", "the second version")
	k.do(http.MethodGet, "/v1/vaults", nil, http.StatusOK, &vaults)
	k.do(http.MethodGet, "/v1/sessions", nil, http.StatusOK, &sessions)
	k.do(http.MethodGet, "/v1/files", nil, http.StatusOK, &files)
	if len(vaults.Data) != 1 || len(sessions.Data) != 1 || len(files.Data) != 1 {
		k.Fatalf("there are %+v, %+v, %+v", vaults, sessions, files)
	}
	has("/v1/vaults/"+vaults.Data[0].ID+"/credentials", "https://mcp.example.com/mcp")
	has("/v1/files/"+files.Data[0].ID+"/content", "what was uploaded")
	session := "/v1/sessions/" + sessions.Data[0].ID
	has(session, "the session", vaults.Data[0].ID)
	has(session+"/events", "hello there, after 1 times hello", "thread_idle", "hand on, after 2 times hello")
	k.do(http.MethodGet, session+"/threads", nil, http.StatusOK, &threads)
	if len(threads.Data) != 1 || threads.Data[0].Status != "idle" {
		k.Fatalf("there are the threads %+v", threads)
	}
	has(session+"/threads/"+threads.Data[0].ID+"/events", "the task")
	var turn made
	k.do(http.MethodPost, session+"/events", map[string]any{"type": "message", "content": "continue"}, http.StatusOK, &turn)
	if turn.Status != "completed" || !strings.HasPrefix(turn.Content, "continue, after ") || strings.HasSuffix(turn.Content, " 0 times hello") {
		k.Errorf("another turn is %+v", turn)
	}
}

// TestUpgradeOfSessions: what agents, their sessions and the files of tenants are in an earlier
// version's data folder is there by HTTP, and a session goes on.
func TestUpgradeOfSessions(t *testing.T) {
	if *update {
		s := serve(t, "")
		fillTalk(s)
		data := s.Keep(t)
		if err := s.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, newest(t), dataFile, packData(t, data))
	}
	for _, v := range versions(t, dataFile) {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			data, err := atolltest.NewData()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(data) })
			unpackData(t, unpack(t, fixture(v, dataFile)), data)
			checkTalk(serve(t, data))
		})
	}
}

// newest is the schema of this version, of which testdata has databases.
func newest(t *testing.T) int {
	t.Helper()
	most := 0
	for _, v := range versions(t, sqliteFile) {
		most = max(most, v)
	}
	return most
}

func packData(t *testing.T, data string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		if slices.Contains(transient, name) {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unpackData(t *testing.T, packed []byte, data string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(data, filepath.FromSlash(h.Name))
		content, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
