package response

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Files are those that executions gave back; a *gateway.Gateway has them.
type Files interface {
	Get(ctx context.Context, t tenant.ID, traceID string) (*execution.Execution, error)
	File(ctx context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error)
	// EndTurn has the sandbox go that calls of a name share.
	EndTurn(ctx context.Context, p *tenant.Principal, agent, turn string) error
}

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
			Params:      []httpapi.Param{id, FileParam},
			Answers:     FileAnswers(unknown),
			Serve:       httpapi.Writes(h.fileContent),
		},
	}
}

// FileParam is the id of a file that a run has shared.
var FileParam = httpapi.Param{Name: "file_id", In: httpapi.InPath, Pattern: "^file_[0-9a-f]{36,48}$", Doc: "The id of the file."}

// FileAnswers are those of ServeFile.
func FileAnswers(unknown httpapi.Answer) []httpapi.Answer {
	typed := []httpapi.Media{{Type: httpapi.OctetStream}, {Type: httpapi.AnyMedia}}
	return []httpapi.Answer{
		{Status: http.StatusOK, Doc: "The file's bytes. Content-Type is by the file's name, application/octet-stream for one that is not known.", Media: typed},
		{Status: http.StatusPartialContent, Doc: "With Range: a part of them.", Media: typed},
		unknown,
		httpapi.Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable: Range is beyond the end of the file."),
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
	r, err := h.find(c)
	if err != nil {
		return nil, err
	}
	s, err := h.Loop.State(c.Context(), r.ID)
	if err != nil {
		return nil, err
	}
	return sandboxtool.Shared(s)
}

func (h *Handlers) fileContent(c *httpapi.Call) error {
	shared, err := h.shared(c)
	if err != nil {
		return err
	}
	gone := fault.New(fault.NotFound, "the response has no such file")
	i := slices.IndexFunc(shared, func(u sandboxtool.FileUse) bool { return u.FileID == c.Path("file_id") })
	if i < 0 {
		return gone
	}
	return h.ServeFile(c, &shared[i], gone)
}

// ServeFile writes a file that a run has shared. It fails with gone if it is there no more.
func (h *Handlers) ServeFile(c *httpapi.Call, u *sandboxtool.FileUse, gone error) error {
	e, err := h.Files.Get(c.Context(), c.Caller.Tenant.ID, u.Execution)
	if fault.KindOf(err) == fault.NotFound {
		return gone
	}
	if err != nil {
		return err
	}
	body, err := h.Files.File(c.Context(), e, u.Stored)
	if err != nil {
		return err
	}
	defer body.Close()
	return c.ServeTyped(u.Name, httpapi.MediaTypeOf(u.Name), time.Time{}, body)
}
