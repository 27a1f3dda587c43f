package service

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/model/scriptedmodel"
	"github.com/atoll-run/atoll/test/atolltest"
)

// containersClient is OpenAI's client for JavaScript; that for Python is among
// pythonPackages.
const containersClient = "openai@6.10.0"

// interpreting is a provider whose model runs what follows "compute " with
// code_interpreter, and repeats what follows "say ". It ends with the results of its calls.
func interpreting(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		if result != "" {
			return scriptedmodel.Say("The result is " + result), true
		}
		switch word, rest, _ := strings.Cut(said, " "); word {
		case "compute":
			arguments, err := json.Marshal(map[string]string{"code": rest})
			return scriptedmodel.Ask("call_1", "code_interpreter", string(arguments)), err == nil
		case "say":
			return scriptedmodel.Say(rest), true
		}
		t.Errorf("the model was asked %q", said)
		return scriptedmodel.Turn{}, false
	}})
	t.Cleanup(p.Close)
	return p
}

// scripted has a server's model "scripted" answer as a provider does, until the test ends.
func scripted(t *testing.T, s *atolltest.Server, provider *httptest.Server) {
	t.Helper()
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPost, "/v1/admin/models", map[string]any{
		"name": "scripted", "provider": "openai", "base_url": provider.URL + "/v1", "prices": map[string]any{"input": "1", "output": "10"},
	}).Into(t, http.StatusCreated, new(map[string]any))
	t.Cleanup(func() {
		if a, err := s.Call(context.WithoutCancel(t.Context()), admin, http.MethodDelete, "/v1/admin/models/scripted", nil, nil); err != nil || a.Status != http.StatusNoContent {
			t.Errorf("remove the model: %v, %v", a, err)
		}
	})
}

// TestPublishedClientsOfContainers drives the clients that OpenAI publishes through
// containers, their files, and code_interpreter in real sandboxes.
func TestPublishedClientsOfContainers(t *testing.T) {
	s := shared(t)
	key, other := s.Tenant(t, "containers", "pro"), s.Tenant(t, "containers-other", "pro")
	scripted(t, s, interpreting(t))
	const want = "containers\nfiles\nautomatic\nstreamed\ncancelled\n"
	if out := python(t, "containers_client.py", "ATOLL_URL="+s.URL, "ATOLL_KEY="+key, "ATOLL_OTHER_KEY="+other); out != want {
		t.Errorf("got %s", out)
	}
	if out := script(t, "containers.mjs", containersClient, "ATOLL_URL="+s.URL, "ATOLL_KEY="+key); out != "containers\n" {
		t.Errorf("got %s", out)
	}
	trail := string(s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/containers/audit?limit=100", nil).Body)
	if !strings.Contains(trail, `"source":"code_interpreter"`) || strings.Contains(trail, "print(6 * 7)") {
		t.Errorf("the trail is %s", trail)
	}
}
