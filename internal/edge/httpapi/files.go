package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const filesListPath = "/v1/files/list"

// Folders lists folders of connections.
type Folders interface {
	ListFolder(ctx context.Context, tenant string, m storage.Mount) ([]storage.File, error)
}

// FilesListRequest is the body of POST /v1/files/list.
type FilesListRequest struct {
	Source *string `json:"source" required:"true" nullable:"false" enum:"thread,volume" doc:"What id names."`
	ID     *string `json:"id" required:"true" nullable:"false" doc:"A thread_id; or slug or id of a connection that this key mounts."`
	Path   *string `json:"path,omitzero" maxLength:"512" doc:"Folder to list: of a thread, from its home; of a connection, from its root as in sub_paths. If left out, the home, or the whole of what this key sees."`
}

// FilesListResponse is what a folder holds.
type FilesListResponse struct {
	Files []File `json:"files" nullable:"false"`
}

// File is a file or a folder.
type File struct {
	Name        string     `json:"name"`
	Path        string     `json:"path" doc:"From the home, or the connection's root."`
	Size        int64      `json:"size" doc:"Bytes; 0 of a folder."`
	Modified    *time.Time `json:"modified" doc:"null where that is not kept, as of a bucket's folders."`
	IsDirectory bool       `json:"is_directory"`
}

// postFilesList lists a folder of a thread, or of a connection as far as the
// caller's key sees it.
func (s *Server) postFilesList(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	var in FilesListRequest
	if err := decodeRequest(w, r, &in); err != nil {
		return err
	}
	switch {
	case in.Source == nil || in.ID == nil:
		return invalid("source and id are required")
	case *in.Source != "thread" && *in.Source != "volume":
		return invalid("source must be thread or volume")
	}
	text := ""
	if in.Path != nil {
		text = *in.Path
	}
	if *in.Source == "thread" {
		if *in.ID == "" || execution.CheckThread(*in.ID) != nil {
			return fault.New(fault.NotFound, "no such thread")
		}
		files, err := s.threadFiles(r.Context(), caller.Tenant.ID, *in.ID, text)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, FilesListResponse{files})
	}
	p, err := storage.ParsePath("path", text)
	if err != nil {
		return err
	}
	m, err := visible(caller, *in.ID, p)
	if err != nil {
		return err
	}
	files, err := s.folders.ListFolder(r.Context(), caller.Tenant.ID, m)
	if err != nil {
		return err
	}
	out := FilesListResponse{Files: make([]File, len(files))}
	for i, f := range files {
		out.Files[i] = File{Name: f.Name, Path: f.Path, Size: f.Size, IsDirectory: f.IsFolder}
		if !f.Modified.IsZero() {
			out.Files[i].Modified = &f.Modified
		}
	}
	return writeJSON(w, http.StatusOK, out)
}

// visible is a folder of a connection as the caller's executions could mount it.
func visible(caller *tenant.Principal, id string, p storage.Path) (storage.Mount, error) {
	for _, g := range caller.Storage {
		if id == g.Connection.ID {
			id = g.Connection.Slug
		}
	}
	mounts, err := storage.Resolve(caller.Storage, nil)
	if err != nil {
		return storage.Mount{}, err
	}
	for _, m := range mounts {
		if m.Slug != id {
			continue
		}
		if p != "" && !p.Within(m.Path) {
			return m, invalid("path lies outside what this key may see of %q: name %q or a folder below it", m.Slug, m.Path)
		}
		if p != "" {
			m.Path = p
		}
		return m, nil
	}
	return storage.Mount{}, fault.New(fault.NotFound, "this key mounts no such connection")
}

// files adds the files to the document.
func (d describer) files(doc *huma.OpenAPI) {
	doc.AddOperation(&huma.Operation{
		OperationID: "listFiles", Method: http.MethodPost, Path: filesListPath, Summary: "List a folder of a thread or a mounted connection", Tags: []string{"files"}, Security: keySecurity,
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(FilesListRequest{})}},
		Responses: d.refusals(map[string]*huma.Response{
			"200": d.json("What the folder holds, by name; at most 10,000 entries.", FilesListResponse{}),
			"404": d.json("not_found: there is no such thread, or this key mounts no such connection.", ErrorResponse{}),
			"503": d.json("service_unavailable: the storage cannot be reached.", ErrorResponse{}),
		}),
	})
}
