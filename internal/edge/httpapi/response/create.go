package response

import (
	"errors"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/openaiwire"
)

func (h *Handlers) create(c *httpapi.Call, in *CreateResponse) error {
	q, err := h.plan(c, in)
	if err != nil {
		return err
	}
	if !q.Settings.Store {
		c.Unkept()
	}
	background, streamed := q.Settings.Background, in.Stream != nil && *in.Stream
	q.Publish = background || streamed
	started, err := h.Service.Create(c.Context(), c.Starter(), q)
	if u, ok := errors.AsType[*mcptool.UnreachableError](err); ok {
		return &httpapi.ProtocolError{Status: http.StatusFailedDependency, Code: openaiwire.ExternalError, Message: u.Error()}
	}
	if err != nil {
		return err
	}
	id := started.Run.ID
	if started.Run.Keep > 0 {
		c.About(response.ID(id))
	}
	if !background {
		defer h.Service.Attend(c.Context(), started)()
	}
	switch {
	case streamed:
		if err := h.stream(c, id, -1); err != nil {
			return err
		}
		h.Service.Forget(c.Context(), started)
		return nil
	case background:
		return h.accept(c, id)
	}
	return h.finish(c, started)
}

// finish answers at the end of a response.
func (h *Handlers) finish(c *httpapi.Call, started *response.Started) error {
	if err := h.Service.Wait(c.Context(), started); err != nil {
		return err
	}
	defer h.Service.Forget(c.Context(), started) // even if the client disconnects before it has the answer
	c.TellRates(h.Service.Gate.Left(c.Caller, started.Model))
	return h.answer(c, started.Run.ID)
}

// answer sends a response as it is now.
func (h *Handlers) answer(c *httpapi.Call, id run.ID) error {
	out, err := h.response(c, id)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, out)
}

// accept sends a response as it was when it began, so that it says the same however fast
// the model is.
func (h *Handlers) accept(c *httpapi.Call, id run.ID) error {
	s, err := h.Service.Begun(c.Context(), id)
	if err != nil {
		return err
	}
	out, err := h.renderer(c).response(s)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, out)
}

func (h *Handlers) find(c *httpapi.Call) (*run.Run, error) {
	return h.Service.Find(c.Context(), c.Caller.Tenant.ID, c.Path("response_id"))
}

func (h *Handlers) renderer(c *httpapi.Call) *renderer {
	return &renderer{
		seal: func(m model.State) (string, error) { return h.Service.SealState(c.Caller.Tenant.ID, m) }, outputs: asksOutputs(c), acts: strings.HasPrefix(c.R.URL.Path, agentPath),
	}
}

func (h *Handlers) response(c *httpapi.Call, id run.ID) (*Response, error) {
	s, err := h.Service.State(c.Context(), id)
	if err != nil {
		return nil, err
	}
	return h.renderer(c).response(s)
}
