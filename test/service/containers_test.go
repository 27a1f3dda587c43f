package service

import (
	"database/sql"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the records of a server that is down

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// pieces are a text as providers send it.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := min(5, len(text))
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

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
			turn := scriptedmodel.Ask("call_1", "code_interpreter", "")
			turn.Blocks[0].Call.Arguments = slices.Collect(pieces(string(arguments)))
			return turn, err == nil
		case "say":
			return scriptedmodel.Say(rest), true
		}
		t.Errorf("the model was asked %q", said)
		return scriptedmodel.Turn{}, false
	}})
	t.Cleanup(p.Close)
	return p
}

// TestPublishedClientsOfContainers drives the clients that OpenAI publishes through
// containers, their files, and code_interpreter in real sandboxes.
func TestPublishedClientsOfContainers(t *testing.T) {
	s := shared(t)
	key, other := s.Tenant(t, "containers", "pro"), s.Tenant(t, "containers-other", "pro")
	lendModel(t, s, "scripted", interpreting(t).URL)
	const want = "containers\nfiles\nautomatic\nstreamed\ncancelled\n"
	if out := python(t, "containers_client.py", "ATOLL_URL="+s.URL, "ATOLL_KEY="+key, "ATOLL_OTHER_KEY="+other); out != want {
		t.Errorf("got %s", out)
	}
	if out := program(t, "containers.mjs", "ATOLL_URL="+s.URL, "ATOLL_KEY="+key); out != "containers\n" {
		t.Errorf("got %s", out)
	}
	trail := string(s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/containers/audit?limit=100", nil).Body)
	if !strings.Contains(trail, `"source":"code_interpreter"`) || strings.Contains(trail, "print(6 * 7)") {
		t.Errorf("the trail is %s", trail)
	}
}

// TestContainerLimits: a container has as much memory as it was asked for, where the
// environment allows that, and a key needs the scope of sandboxes.
func TestContainerLimits(t *testing.T) {
	s := shared(t)
	s.Tenant(t, "container-limits", "pro")
	admin, base := s.AdminKey(t), "/v1/admin/tenants/container-limits"
	s.Must(t, admin, http.MethodPost, base+"/environments", map[string]any{"name": "large", "image": atolltest.Image, "limits": map[string]any{"memory": 2 << 30}}).Into(t, http.StatusCreated, new(map[string]any))
	key := func(scopes ...string) string {
		var made struct{ Key string }
		s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{"name": scopes[0], "environment": "large", "scopes": scopes}).Into(t, http.StatusCreated, &made)
		return made.Key
	}
	full := key("sandboxes")
	var made struct {
		ID          string
		MemoryLimit string `json:"memory_limit"`
	}
	s.Must(t, full, http.MethodPost, "/v1/containers", map[string]any{"name": "large", "memory_limit": "1g"}).Into(t, http.StatusOK, &made)
	var sb struct{ Limits struct{ Memory int64 } }
	s.Must(t, full, http.MethodGet, "/v1/sandboxes/"+strings.Replace(made.ID, "cntr_", "sb-", 1), nil).Into(t, http.StatusOK, &sb)
	if made.MemoryLimit != "1g" || sb.Limits.Memory != 1<<30 {
		t.Errorf("%+v, %+v", made, sb)
	}
	s.Must(t, full, http.MethodPost, "/v1/containers", map[string]any{"name": "larger", "memory_limit": "4g"}).Into(t, http.StatusBadRequest, new(map[string]any))
	s.Must(t, full, http.MethodDelete, "/v1/containers/"+made.ID, nil).Into(t, http.StatusOK, new(map[string]any))
	lendModel(t, s, "scripted", interpreting(t).URL)
	body := map[string]any{"model": "scripted", "input": "compute 1", "tools": []any{map[string]any{"type": "code_interpreter", "container": map[string]string{"type": "auto"}}}}
	s.Must(t, key("execute"), http.MethodPost, "/v1/responses", body).Into(t, http.StatusForbidden, new(map[string]any))
}

// TestInterpreterSurvivesServers ends servers while code of code_interpreter runs. The next
// server collects what the code came to, and runs nothing twice; what the code defined
// stays.
func TestInterpreterSurvivesServers(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	provider := interpreting(t)
	addModel(t, line.now(), "scripted", provider.URL)
	type item struct {
		Type        string
		Status      string
		ContainerID string `json:"container_id"`
		Outputs     []struct{ Logs string }
	}
	type response struct {
		ID, Status string
		Output     []item
	}
	ask := func(s *atolltest.Server, input, previous string) (r response) {
		body := map[string]any{
			"model": "scripted", "input": input, "background": true, "include": []string{"code_interpreter_call.outputs"},
			"tools": []any{map[string]any{"type": "code_interpreter", "container": map[string]string{"type": "auto"}}},
		}
		if previous != "" {
			body["previous_response_id"] = previous
		}
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		return r
	}
	end := func(id string) (r response) {
		atolltest.Until(t, time.Minute, "the response ends", func() bool {
			a, err := line.now().Call(t.Context(), atolltest.Key, http.MethodGet, "/v1/responses/"+id, nil, nil)
			return err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &r) == nil && r.Status != "in_progress"
		})
		return r
	}
	previous, container := "", ""
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s := line.now()
		r := ask(s, "compute x = "+strconv.Itoa(i)+"\nopen('runs', 'a').write('ran ')\nprint('begun', flush=True)\nimport time; time.sleep(3)\nprint('end')\nx", previous)
		atolltest.Until(t, time.Minute, "the code runs", func() bool {
			var now response
			s.Must(t, atolltest.Key, http.MethodGet, "/v1/responses/"+r.ID, nil).Into(t, http.StatusOK, &now)
			if len(now.Output) == 0 {
				return false
			}
			var list struct{ Data []struct{ ID string } }
			s.Must(t, atolltest.Key, http.MethodGet, "/v1/containers", nil).Into(t, http.StatusOK, &list)
			if len(list.Data) == 0 {
				return false
			}
			a := s.Must(t, atolltest.Key, http.MethodGet, "/v1/containers/"+list.Data[0].ID+"/files", nil)
			return strings.Contains(string(a.Body), "/home/user/runs")
		})
		line.next(sig)
		got := end(r.ID)
		if got.Status != "completed" || len(got.Output) != 2 || got.Output[0].Status != "completed" || len(got.Output[0].Outputs) != 1 || got.Output[0].Outputs[0].Logs != "begun\nend\n"+strconv.Itoa(i)+"\n" {
			t.Fatalf("after %s: %+v\n%s", sig, got, line.now().Log())
		}
		if container != "" && got.Output[0].ContainerID != container {
			t.Errorf("the container is %s, and was %s", got.Output[0].ContainerID, container)
		}
		previous, container = got.ID, got.Output[0].ContainerID
	}
	cancelledWhileDown(t, line, previous)
	last := end(ask(line.now(), "compute print(open('runs').read(), x)", previous).ID)
	if len(last.Output) != 2 || len(last.Output[0].Outputs) != 1 || last.Output[0].Outputs[0].Logs != "ran ran  1\n" {
		t.Errorf("in the end: %+v", last)
	}
}

// cancelledWhileDown has code of both kinds run on while there is no server, in which time its
// responses are cancelled: the next server ends it, and the interpreter is there for others.
func cancelledWhileDown(t *testing.T, line *succession, previous string) {
	t.Helper()
	addModel(t, line.now(), "sleeper", tireless(t, nil, nil).URL)
	begin := func(body map[string]any) string {
		var r struct{ ID string }
		body["background"] = true
		line.now().Must(t, atolltest.Key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		return r.ID
	}
	ids := []string{
		begin(map[string]any{"model": "sleeper", "input": "sleeps", "tools": []any{map[string]any{"type": "sandbox"}}}),
		begin(map[string]any{
			"model": "scripted", "input": "compute import time; open('sleeps', 'w'); time.sleep(50)", "previous_response_id": previous,
			"tools": []any{map[string]any{"type": "code_interpreter", "container": map[string]string{"type": "auto"}}},
		}),
	}
	running := func() int {
		var page struct{ Data []record }
		line.now().Must(t, atolltest.Key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &page)
		return len(page.Data)
	}
	atolltest.Until(t, time.Minute, "both programs run", func() bool {
		var list struct{ Data []struct{ ID string } }
		line.now().Must(t, atolltest.Key, http.MethodGet, "/v1/containers", nil).Into(t, http.StatusOK, &list)
		a := line.now().Must(t, atolltest.Key, http.MethodGet, "/v1/containers/"+list.Data[0].ID+"/files", nil)
		return running() == 1 && strings.Contains(string(a.Body), "/home/user/sleeps")
	})
	line.next(syscall.SIGKILL, func() { // as a server does that dies before it acts
		db, err := sql.Open("sqlite", filepath.Join(line.data, "atoll.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "UPDATE runs SET cancelled = 1 WHERE due_at IS NOT NULL"); err != nil {
			t.Fatal(err)
		}
	})
	began := time.Now()
	for _, id := range ids {
		atolltest.Until(t, time.Minute, "the response is cancelled", func() bool {
			var r struct{ Status string }
			a, err := line.now().Call(t.Context(), atolltest.Key, http.MethodGet, "/v1/responses/"+id, nil, nil)
			return err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &r) == nil && r.Status == "cancelled"
		})
	}
	if n := running(); n > 0 || time.Since(began) > 40*time.Second {
		t.Errorf("%d executions run on, %s after the start", n, time.Since(began))
	}
}
