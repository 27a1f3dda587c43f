package service

import (
	"context"
	"net/http"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
)

// addModel gives a server a model of a scripted provider at a URL, which can do what is
// said, or what models can by default.
func addModel(t testing.TB, s *atolltest.Server, name, url string, can ...model.Capability) {
	t.Helper()
	body := map[string]any{"name": name, "provider": "openai", "base_url": url + "/v1", "prices": map[string]any{"input": "1", "output": "10"}}
	if len(can) > 0 {
		body["capabilities"] = can
	}
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/models", body).Into(t, http.StatusCreated, nil)
}

// lendModel gives a server that others share a model until the test ends.
func lendModel(t testing.TB, s *atolltest.Server, name, url string, can ...model.Capability) {
	t.Helper()
	addModel(t, s, name, url, can...)
	t.Cleanup(func() {
		if a, err := s.Call(context.WithoutCancel(t.Context()), s.AdminKey(t), http.MethodDelete, "/v1/admin/models/"+name, nil, nil); err != nil || a.Status != http.StatusNoContent {
			t.Errorf("remove the model: %v, %v", a, err)
		}
	})
}
