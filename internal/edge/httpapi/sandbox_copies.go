package httpapi

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// sleepSandbox has a sandbox sleep at once; its next use wakes it.
func (s *Server) sleepSandbox(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	sb, err := s.sandboxes.Sleep(r.Context(), p.caller, p.session, p.name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sandboxWire(sb))
}

// forkSandbox makes copies of a sandbox as it is at one moment.
func (s *Server) forkSandbox(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil, "count")
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	count, err := queryInt(p.query, "count", 1, 1, sandbox.MaxForks)
	if err != nil {
		return err
	}
	copies, err := s.sandboxes.Fork(r.Context(), p.caller, p.session, p.name, int(count))
	if err != nil {
		return err
	}
	body := SandboxList{Data: make([]Sandbox, len(copies))}
	for i, sb := range copies {
		body.Data[i] = sandboxWire(sb)
	}
	return writeJSON(w, http.StatusCreated, body)
}
