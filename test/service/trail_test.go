package service

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// trailIsBounded has a tenant make calls that cost it nothing, until there is no more
// room for their rows: its calls are refused, those of others are not, and it can still
// look at what it has and end it.
func trailIsBounded(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0", "ATOLL_AUDIT_ROOM=10s"}})
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPut, "/v1/admin/plans/tiny", map[string]any{"max_request_rate": 10}).Into(t, http.StatusOK, nil)
	key, other := s.Tenant(t, "chatty", "tiny"), s.Tenant(t, "chatty-other", "tiny")
	s.Must(t, key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "x"}).Into(t, http.StatusCreated, nil)
	file := "/v1/sandboxes/x/files?path=/etc/hostname"
	var said struct {
		refusal
		ResetsAt time.Time `json:"resets_at"`
	}
	atolltest.Until(t, 3*time.Minute, "the trail is full", func() bool {
		a := s.Must(t, key, http.MethodGet, file, nil)
		if a.Status != http.StatusTooManyRequests {
			return false
		}
		a.Into(t, http.StatusTooManyRequests, &said)
		return said.Dimension == "audit_rows"
	})
	if said.Error != "rate_limited" || !strings.Contains(said.Message, "(10 requests per second for 10s)") || time.Until(said.ResetsAt) > 24*time.Hour {
		t.Errorf("it was refused with %+v", said)
	}
	s.Must(t, other, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print(1)"}).Into(t, http.StatusOK, nil)
	wait := func(method, path string, body any) (a *atolltest.Answer) {
		t.Helper()
		atolltest.Until(t, time.Minute, "the tenant's rate allows a request", func() bool {
			a = s.Must(t, key, method, path, body)
			return a.Status != http.StatusTooManyRequests || !strings.Contains(string(a.Body), "_requests")
		})
		return a
	}
	wait(http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print(1)"}).Into(t, http.StatusTooManyRequests, &said)
	if said.Dimension != "audit_rows" {
		t.Errorf("an execution was refused with %+v", said)
	}
	wait(http.MethodGet, "/v1/sandboxes/x", nil).Into(t, http.StatusOK, nil)
	wait(http.MethodDelete, "/v1/sandboxes/x", nil).Into(t, http.StatusNoContent, nil)
}
