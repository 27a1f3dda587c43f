package sandbox

import (
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Preview is an open port.
type Preview struct {
	Port      int       `json:"port" doc:"The TCP port."`
	URL       string    `json:"url" doc:"Any client that has the URL reaches the port. It stays the same until the preview is closed."`
	CreatedAt time.Time `json:"created_at"`
}

// PreviewList lists the previews of a sandbox.
type PreviewList struct {
	Data []Preview `json:"data"`
}

func previewOf(p *preview.Preview) Preview {
	return Preview{Port: int(p.Port), URL: p.URL, CreatedAt: p.CreatedAt.UTC()}
}

func (h *Handlers) previews() []httpapi.Operation {
	const (
		previews = sandboxPath + "/previews"
		one      = previews + "/{port}"
	)
	port := httpapi.Param{Name: "port", In: httpapi.InPath, Type: httpapi.Int, Min: 1, Max: 65535, Doc: "The port that a program of the sandbox listens on.", Example: "8000"}
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: previews, ID: "listPreviews", Summary: "List open ports", Description: "Ports that have a URL, whether or not a program listens on them.", Params: onOne(),
			Answers: []httpapi.Answer{httpapi.OK(PreviewList{}, "By port.")}, Serve: httpapi.Returns(h.listPreviews),
		},
		{
			Method: http.MethodPut, Path: one, ID: "openPreview", Summary: "Open a port to browsers", Description: "The answer has a URL that reaches the port without a key: anyone with the URL has access. Repeated calls return the same URL. A sandbox has at most 64.", Audit: "preview_open", Params: onOne(port),
			Answers: []httpapi.Answer{httpapi.OK(Preview{}, "It is open, from now or from before.")}, Serve: httpapi.Returns(h.openPreview),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "closePreview", Summary: "Close a port: its URL stops working for good", Description: "Connections that are open through it on this server end. A port that is opened again gets another URL.", Audit: "preview_close", Params: onOne(port),
			Answers: []httpapi.Answer{gone}, Serve: httpapi.Does(h.closePreview),
		},
	}
}

// onPort finds the sandbox and the port that a request is about.
func (h *Handlers) onPort(c *httpapi.Call) (sandboxes.Ref, uint16, error) {
	r, err := h.ref(c)
	if err != nil {
		return r, 0, err
	}
	n, err := strconv.ParseUint(c.Path("port"), 10, 16)
	if err != nil || n == 0 {
		return r, 0, httpapi.Invalid("port must be a number from 1 to 65535")
	}
	return r, uint16(n), nil
}

func (h *Handlers) listPreviews(c *httpapi.Call) (out PreviewList, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	all, err := h.Service.ListPreviews(c.Context(), r)
	return PreviewList{httpapi.Each(all, previewOf)}, err
}

func (h *Handlers) openPreview(c *httpapi.Call) (out Preview, err error) {
	r, port, err := h.onPort(c)
	if err != nil {
		return out, err
	}
	p, err := h.Service.OpenPreview(c.Context(), r, port)
	if err != nil {
		return out, err
	}
	return previewOf(p), nil
}

func (h *Handlers) closePreview(c *httpapi.Call) error {
	r, port, err := h.onPort(c)
	if err != nil {
		return err
	}
	return h.Service.ClosePreview(c.Context(), r, port)
}
