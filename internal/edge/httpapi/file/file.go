// Package file serves the files that tenants upload, and those that the agents of their sessions
// have shared, in the form that the published anthropic packages read.
package file

import (
	"net/http"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve files: to keys with the scope read to see them, execute to change them.
type Handlers struct {
	Files         *upload.Service
	Conversations *conversation.Service // nil without sessions
	Outputs       httpapi.Outputs       // the contents of shared files
}

const (
	all = "/v1/files"
	one = all + "/{file_id}"
)

const maxPage = 100 // files

// Operations are those of /v1/files.
func (h *Handlers) Operations() []httpapi.Operation {
	id := []httpapi.Param{{Name: "file_id", In: httpapi.InPath, Doc: "Id of a file: of one that was uploaded, or of one that a session's agent has shared."}}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the file does not exist, has expired, or belongs to another tenant.")
	ops := []httpapi.Operation{
		{
			Method: http.MethodPost, Path: all, ID: "uploadFile", Summary: "Upload a file", Scope: tenant.ScopeExecute, Body: &httpapi.Body{Media: "multipart/form-data"},
			Description: "A form with the field `file`, and `expires_in_seconds`, 3600 to 7776000, if it is to be deleted by itself. Messages of sessions and their sandboxes can have it by its id.",
			Answers: []httpapi.Answer{httpapi.OK(UploadedFile{}, "The file. It does not change."),
				httpapi.Refusal(http.StatusRequestEntityTooLarge, "payload_too_large: the file has more than `max_file_size`."),
				httpapi.Refusal(http.StatusUnsupportedMediaType, "unsupported_media_type: the body is not multipart/form-data."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: the tenant has the most files, or bytes of them.")},
			Serve: httpapi.Returns(h.upload),
		},
		{
			Method: http.MethodGet, Path: all, ID: "listUploadedFiles", Summary: "List the tenant's files, newest first", Scope: tenant.ScopeRead,
			Params: append(httpapi.PageParams(20, 1000),
				httpapi.Param{Name: "ids", Many: true, Doc: "Only those, without pages; up to 100. Unknown ids are omitted."}, httpapi.Param{Name: "ids[]", Many: true, Hidden: true},
				httpapi.Param{Name: "scope_id", Doc: "Id of a session: the files that its agent has shared, oldest first, instead of those that were uploaded."}),
			Description: "A page has at most 100 files.",
			Answers:     []httpapi.Answer{httpapi.OK(httpapi.Page[UploadedFile]{}, "A page."), httpapi.Refusal(http.StatusNotFound, "not_found: the session does not exist, or belongs to another tenant.")},
			Serve:       httpapi.Returns(h.list),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getFile", Summary: "Show what is recorded of a file", Description: "Name, media type, size and what it belongs to; the bytes are at `/content`.", Scope: tenant.ScopeRead, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(UploadedFile{}, "The file."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: http.MethodGet, Path: one + "/content", ID: "getFileContent", Summary: "Download a file", Scope: tenant.ScopeRead, Params: id,
			Description: "Its bytes, with its media type and a Content-Disposition that has its name. `Range` works.",
			Answers:     httpapi.FileAnswers(unknown), Serve: httpapi.Writes(h.content),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteFile", Summary: "Delete a file", Scope: tenant.ScopeExecute, Params: id,
			Description: "Messages that have it keep its bytes, and so do sandboxes. A file that an agent has shared is deleted with its session, and cannot be deleted here.",
			Answers:     []httpapi.Answer{httpapi.OK(DeletedFile{}, "It is gone."), unknown}, Serve: httpapi.Returns(h.remove),
		},
	}
	for i := range ops {
		ops[i].Tag = "files"
	}
	return ops
}

// shared finds a file that the agent of a session has shared.
func (h *Handlers) shared(c *httpapi.Call) (session.ID, *sandboxtool.FileUse, error) {
	if h.Conversations == nil {
		return "", nil, upload.ErrNotFound
	}
	of, u, err := h.Conversations.SharedFile(c.Context(), c.Caller.Tenant.ID, c.Path("file_id"))
	if err != nil && fault.KindOf(err) == fault.NotFound {
		err = upload.ErrNotFound
	}
	return of, u, err
}

func (h *Handlers) get(c *httpapi.Call) (out UploadedFile, err error) {
	if !upload.ID(c.Path("file_id")).Valid() {
		of, u, err := h.shared(c)
		if err != nil {
			return out, err
		}
		return sharedOf(of, u, time.Unix(u.CreatedAt, 0).UTC()), nil
	}
	f, err := h.Files.Get(c.Context(), c.Caller.Tenant.ID, c.Path("file_id"))
	if err != nil {
		return out, err
	}
	return fileOf(f), nil
}

func (h *Handlers) content(c *httpapi.Call) error {
	if !upload.ID(c.Path("file_id")).Valid() {
		_, u, err := h.shared(c)
		if err != nil {
			return err
		}
		return c.ServeOutput(h.Outputs, u.Execution, u.Stored, u.Name, upload.ErrNotFound)
	}
	f, err := h.Files.Get(c.Context(), c.Caller.Tenant.ID, c.Path("file_id"))
	if err != nil {
		return err
	}
	body := h.Files.Open(c.Context(), f)
	defer body.Close()
	return c.ServeTyped(f.Name, f.MediaType, f.CreatedAt, body)
}

func (h *Handlers) remove(c *httpapi.Call) (DeletedFile, error) {
	id := c.Path("file_id")
	return DeletedFile{id, "file_deleted"}, h.Files.Delete(c.Context(), c.Caller, id)
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[UploadedFile], err error) {
	out.Data = []UploadedFile{}
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	ctx, of, limit := c.Context(), c.Caller.Tenant.ID, min(int(c.Int("limit")), maxPage)
	if c.Has("ids") || c.Has("ids[]") {
		if cursor != "" || c.Has("scope_id") {
			return out, httpapi.Invalid("ids has no meaning with page and scope_id: leave them out")
		}
		found, err := h.Files.Find(ctx, of, slices.Concat(c.Query["ids"], c.Query["ids[]"]))
		return pageOf(found, ""), err
	}
	if c.Has("scope_id") {
		id := session.ID(c.Text("scope_id"))
		if h.Conversations == nil {
			return out, session.ErrNotFound
		}
		page, next, err := h.Conversations.SharedFiles(ctx, of, id, agent.Page{Cursor: cursor, Limit: limit})
		return httpapi.Page[UploadedFile]{Data: httpapi.Each(page, func(e session.TreeEvent) UploadedFile {
			u := conversation.FileOf(&e.Event)
			return sharedOf(id, &u, e.At)
		}), NextPage: httpapi.OrNull(next)}, err
	}
	page, next, err := h.Files.Store.List(ctx, of, upload.Page{Cursor: cursor, Limit: limit})
	return pageOf(page, next), err
}

func pageOf(page []upload.File, next string) httpapi.Page[UploadedFile] {
	return httpapi.Page[UploadedFile]{Data: httpapi.Each(page, func(f upload.File) UploadedFile { return fileOf(&f) }), NextPage: httpapi.OrNull(next)}
}
