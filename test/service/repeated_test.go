package service

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestRepeatedAcrossRestart: what was made is not made again when its request is repeated at
// the server's successor, and is answered as it was.
func TestRepeatedAcrossRestart(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{NotReady: true})
	o := atolltest.Options{Data: s.Keep(t), NotReady: true}
	addModel(t, s, "of-the-test", "https://models.example.com") // which is never asked
	made := []struct {
		path   string
		body   map[string]any
		answer *atolltest.Answer
	}{
		{path: "/v1/agents", body: map[string]any{"name": "A", "slug": "repeated", "model": map[string]string{"name": "of-the-test"}}},
		{path: "/v1/sessions", body: map[string]any{"agent_id": "repeated"}},
		{path: "/v1/sandboxes", body: map[string]any{"name": "repeated"}},
		{path: "/v1/sandboxes/repeated/processes", body: map[string]any{"command": "echo once >> once; cat once"}},
	}
	send := func(s *atolltest.Server, key, path string, body map[string]any) *atolltest.Answer {
		t.Helper()
		a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, path, body, http.Header{"Idempotency-Key": {key}})
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, s.Log())
		}
		return a
	}
	repeated := func(s *atolltest.Server) {
		t.Helper()
		for _, m := range made {
			again := send(s, m.path, m.path, m.body)
			again.Into(t, http.StatusCreated, nil)
			if !bytes.Equal(again.Body, m.answer.Body) || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Location") != m.answer.Header.Get("Location") || again.Header.Get("X-Trace-Id") != m.answer.Header.Get("X-Trace-Id") {
				t.Errorf("%s: %v %s, and then %v %s", m.path, m.answer.Header, m.answer.Body, again.Header, again.Body)
			}
		}
	}
	for i := range made {
		m := &made[i]
		m.answer = send(s, m.path, m.path, m.body)
		m.answer.Into(t, http.StatusCreated, nil)
	}
	repeated(s)
	for _, m := range made[1:] {
		var all struct{ Data []any }
		s.Must(t, atolltest.Key, http.MethodGet, m.path, nil).Into(t, http.StatusOK, &all)
		if len(all.Data) != 1 {
			t.Errorf("%s has %d", m.path, len(all.Data))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = atolltest.Start(t, o)
	repeated(s)
	var sandboxes struct{ Data []any } // which end with their server
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes", nil).Into(t, http.StatusOK, &sandboxes)
	if len(sandboxes.Data) != 0 {
		t.Errorf("there are %d sandboxes", len(sandboxes.Data))
	}
	if a := send(s, "/v1/agents", "/v1/agents", map[string]any{"name": "B", "model": map[string]string{"name": "of-the-test"}}); a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "different request") {
		t.Errorf("another agent: %d %s", a.Status, a.Body)
	}
}
