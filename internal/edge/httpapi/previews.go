package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// OpenPorts are the previews of sandboxes; a preview.Previews is.
type OpenPorts interface {
	Open(ctx context.Context, id runtime.ID, port uint16) (*preview.Preview, error)
	List(ctx context.Context, id runtime.ID) ([]*preview.Preview, error)
	Close(ctx context.Context, id runtime.ID, port uint16) error
}

const (
	previewsPath = sandboxPath + "/previews"
	previewPath  = previewsPath + "/{port}"
)

func (s *Server) previewRoutes() []route {
	return s.acts([]act{
		{http.MethodGet, previewsPath, "", s.listPreviews},
		{http.MethodPut, previewPath, "preview_open", s.openPreview},
		{http.MethodDelete, previewPath, "preview_close", s.closePreview},
	})
}

// onPreview finds the sandbox that a request is about, which is not woken.
func (s *Server) onPreview(r *http.Request) (runtime.ID, error) {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return "", err
	}
	sb, err := s.sandboxes.Get(r.Context(), p.caller, p.session, p.name)
	if err != nil {
		return "", err
	}
	p.trail.asks(r.PathValue("port"))
	return sb.ID, nil
}

// portOf returns the port in a request's path.
func portOf(r *http.Request) (uint16, error) {
	n, err := strconv.ParseUint(r.PathValue("port"), 10, 16)
	if err != nil || n == 0 {
		return 0, invalid("port must be a number from 1 to 65535")
	}
	return uint16(n), nil
}

func (s *Server) listPreviews(w http.ResponseWriter, r *http.Request) error {
	id, err := s.onPreview(r)
	if err != nil {
		return err
	}
	all, err := s.ports.List(r.Context(), id)
	if err != nil {
		return err
	}
	body := PreviewList{Data: make([]Preview, len(all))}
	for i, p := range all {
		body.Data[i] = previewWire(p)
	}
	return writeJSON(w, http.StatusOK, body)
}

func (s *Server) openPreview(w http.ResponseWriter, r *http.Request) error {
	id, err := s.onPreview(r)
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	port, err := portOf(r)
	if err != nil {
		return err
	}
	p, err := s.ports.Open(r.Context(), id, port)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, previewWire(p))
}

func (s *Server) closePreview(w http.ResponseWriter, r *http.Request) error {
	id, err := s.onPreview(r)
	if err != nil {
		return err
	}
	port, err := portOf(r)
	if err != nil {
		return err
	}
	if err := s.ports.Close(r.Context(), id, port); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
