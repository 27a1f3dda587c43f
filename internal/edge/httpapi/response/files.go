package response

import (
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) fileOperations(one, name, note string, id httpapi.Param, unknown httpapi.Answer) []httpapi.Operation {
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: one + "/files", ID: "list" + name + "Files", Summary: "List the files of a response", Scope: tenant.ScopeRead,
			Description: "The files that the model shared, oldest first. They are there from when they are shared, and go with the response." + note,
			Params:      []httpapi.Param{id},
			Answers:     []httpapi.Answer{httpapi.OK(ResponseFiles{}, "All of them."), unknown},
			Serve:       httpapi.Returns(h.files),
		},
		{
			Method: http.MethodGet, Path: one + "/files/{file_id}/content", ID: "get" + name + "File", Summary: "Get a file of a response", Scope: tenant.ScopeRead,
			Description: "Its bytes, with a Content-Type by its name and a Content-Disposition that has it. `Range` works." + note,
			Params:      []httpapi.Param{id, httpapi.FileParam},
			Answers:     httpapi.FileAnswers(unknown),
			Serve:       httpapi.Writes(h.fileContent),
		},
	}
}

// ResponseFiles are the files of a response.
type ResponseFiles struct {
	Object string         `json:"object" required:"true" enum:"list"`
	Data   []ResponseFile `json:"data" required:"true"`
}

// ResponseFile is a file that a model shared.
type ResponseFile struct {
	ID        string `json:"id" required:"true"`
	Object    string `json:"object" required:"true" enum:"file"`
	FileName  string `json:"filename" required:"true"`
	Bytes     int64  `json:"bytes" required:"true" doc:"Size in bytes."`
	CreatedAt int64  `json:"created_at" required:"true" doc:"Seconds since 1970."`
}

func (h *Handlers) files(c *httpapi.Call) (*ResponseFiles, error) {
	shared, err := h.shared(c)
	if err != nil {
		return nil, err
	}
	out := &ResponseFiles{Object: "list", Data: []ResponseFile{}}
	for _, u := range shared {
		f := ResponseFile{ID: u.FileID, Object: "file", FileName: u.Name, CreatedAt: u.CreatedAt}
		if u.Size != nil {
			f.Bytes = *u.Size
		}
		out.Data = append(out.Data, f)
	}
	return out, nil
}

// shared are the files of the response that a call names.
func (h *Handlers) shared(c *httpapi.Call) ([]sandboxtool.FileUse, error) {
	return h.Service.Shared(c.Context(), c.Caller.Tenant.ID, c.Path("response_id"))
}

func (h *Handlers) fileContent(c *httpapi.Call) error {
	shared, err := h.shared(c)
	if err != nil {
		return err
	}
	gone := fault.New(fault.NotFound, "file not found in this response")
	i := slices.IndexFunc(shared, func(u sandboxtool.FileUse) bool { return u.FileID == c.Path("file_id") })
	if i < 0 {
		return gone
	}
	u := &shared[i]
	return c.ServeOutput(h.Files, u.Execution, u.Stored, u.Name, gone)
}
