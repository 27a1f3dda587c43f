package httpapi

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

func (s *Server) listSandboxPorts(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		found, err := h.Guest().Listening(r.Context())
		if err != nil {
			return err
		}
		ports := make([]SandboxPort, 0, len(found))
		for _, at := range found {
			ports = append(ports, SandboxPort{Port: int(at.Port()), Address: at.Addr().String()})
		}
		return writeJSON(w, http.StatusOK, SandboxPorts{ports})
	})
}
