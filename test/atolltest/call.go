package atolltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Answer is an answer to Call.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Into decodes the body; the test fails if the status is not as wanted.
func (a *Answer) Into(t testing.TB, status int, into any) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("HTTP %d, want %d: %s", a.Status, status, a.Body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
}

// callTime is more than any call of a test takes. One that hangs fails its test, and does not
// take the time of all others.
const callTime = 5 * time.Minute

// Call makes any request with a key; a body that is not nil is sent as JSON. It fails after five
// minutes.
func (s *Server) Call(ctx context.Context, key, method, path string, body any, header http.Header) (*Answer, error) {
	var raw io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		raw = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, raw)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(res.Body)
	return &Answer{res.StatusCode, res.Header, out}, errors.Join(err, res.Body.Close())
}

// Must is Call for requests that must be answered.
func (s *Server) Must(t testing.TB, key, method, path string, body any) *Answer {
	t.Helper()
	a, err := s.Call(t.Context(), key, method, path, body, nil)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.Log())
	}
	return a
}

// AdminKey is the key that the server made at its first start.
func (s *Server) AdminKey(t testing.TB) string {
	t.Helper()
	of := s
	if s.gateway != nil {
		of = s.gateway
	}
	key, err := os.ReadFile(filepath.Join(of.Data, "admin-key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(key))
}

// Tenant makes a tenant with an environment like the server's default and a key
// for it.
func (s *Server) Tenant(t testing.TB, name, plan string) (key string) {
	t.Helper()
	admin := s.AdminKey(t)
	base := "/v1/admin/tenants"
	s.Must(t, admin, http.MethodPost, base, map[string]any{"name": name, "plan": plan}).Into(t, http.StatusCreated, nil)
	base += "/" + name
	s.Must(t, admin, http.MethodPost, base+"/environments", map[string]any{"name": "main", "image": Image}).Into(t, http.StatusCreated, nil)
	var made struct {
		Key string `json:"key"`
	}
	s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{"name": "main", "environment": "main"}).Into(t, http.StatusCreated, &made)
	if made.Key == "" {
		t.Fatal(fmt.Errorf("no key of tenant %s was shown", name))
	}
	return made.Key
}
