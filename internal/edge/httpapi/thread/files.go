package thread

import (
	"context"
	"io"
	"net/http"
	"path"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) listFiles(c *httpapi.Call) (out FilesListResponse, err error) {
	id, err := idOf(c)
	if err != nil {
		return out, err
	}
	return h.folder(c.Context(), c.Caller.Tenant.ID, id, c.Text("path"))
}

// folder lists a folder of a thread.
func (h *Handlers) folder(ctx context.Context, tenantID tenant.ID, id, folder string) (out FilesListResponse, err error) {
	tree, err := h.Threads.Home(ctx, tenantID, id)
	if err != nil {
		return out, err
	}
	entries, err := tree.List(folder)
	if err != nil {
		return out, err
	}
	return FilesListResponse{httpapi.Each(entries, fileOf)}, nil
}

// onFile finds whose file is meant: a signed URL's, or the caller's, whose key must have a
// scope.
func (h *Handlers) onFile(c *httpapi.Call, scope tenant.Scope) (o thread.Owner, id string, err error) {
	if c.Has(signatureParam) {
		return h.signed(c)
	}
	if err := c.Authorize(scope); err != nil {
		return o, "", err
	}
	id, err = idOf(c)
	return ownerOf(c.Caller), id, err
}

func (h *Handlers) getFile(c *httpapi.Call) error {
	o, id, err := h.onFile(c, tenant.ScopeRead)
	if err != nil {
		return err
	}
	tree, err := h.Threads.Home(c.Context(), o.Tenant, id)
	if err != nil {
		return err
	}
	name := c.Path("path")
	e, err := tree.Stat(name)
	if err != nil {
		return err
	}
	if e.Directory {
		return httpapi.Invalid("%q is a folder: GET /v1/threads/%s/files?path= lists it", name, id)
	}
	body := file.NewSeekable(e.Size, nil, func(at int64) (io.ReadCloser, error) {
		return tree.Open(c.Context(), name, at, -1)
	})
	defer body.Close()
	return c.ServeFile(e.Name, e.Modified, body)
}

func (h *Handlers) putFile(c *httpapi.Call) (FileEntry, error) {
	o, id, err := h.onFile(c, tenant.ScopeExecute)
	if err != nil {
		return FileEntry{}, err
	}
	name := c.Path("path")
	var made thread.Entry
	err = h.edit(c, o, id, func(ctx context.Context, t thread.Home, body io.Reader) (thread.Home, error) {
		next, err := t.WriteFile(ctx, name, body, thread.Quota{Bytes: o.Size})
		if err == nil {
			made, err = next.Stat(name)
		}
		return next, err
	})
	return fileOf(made), err
}

func (h *Handlers) deleteFile(c *httpapi.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	// This does not create a thread.
	if _, err := h.Threads.Get(c.Context(), c.Caller.Tenant.ID, id); err != nil {
		return err
	}
	return h.Threads.Edit(c.Context(), ownerOf(c.Caller), id, func(ctx context.Context, t thread.Home) (thread.Home, error) {
		return t.Remove(ctx, c.Path("path"))
	})
}

func (h *Handlers) export(c *httpapi.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	tree, err := h.Threads.Home(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return err
	}
	c.Attachment(path.Base(id) + ".tar")
	if c.R.Method == http.MethodHead {
		c.Start(httpapi.Tar)
		return nil
	}
	head := c.W.Header()
	head.Set("Content-Type", httpapi.Tar)
	head.Set("Cache-Control", "no-store")
	return tree.Export(c.Context(), c.W)
}

func (h *Handlers) importTar(c *httpapi.Call) (Thread, error) {
	id, err := idOf(c)
	if err != nil {
		return Thread{}, err
	}
	o := ownerOf(c.Caller)
	err = h.edit(c, o, id, func(ctx context.Context, _ thread.Home, body io.Reader) (thread.Home, error) {
		return h.Threads.Import(ctx, o, body)
	})
	if err != nil {
		return Thread{}, err
	}
	return h.record(c.Context(), o.Tenant, id)
}

// edit changes a thread by what the request's body has.
func (h *Handlers) edit(c *httpapi.Call, o thread.Owner, id string,
	change func(ctx context.Context, t thread.Home, body io.Reader) (thread.Home, error),
) error {
	if c.R.ContentLength > thread.MaxUpload {
		return fault.New(fault.TooLarge, "a body must have at most %d bytes", int64(thread.MaxUpload))
	}
	body := c.Content()
	return h.Threads.Edit(c.Context(), o, id, func(ctx context.Context, t thread.Home) (thread.Home, error) {
		return change(ctx, t, body)
	})
}

// listFolder lists a folder of a thread, or of a connection as far as the caller's key
// sees it.
func (h *Handlers) listFolder(c *httpapi.Call, in *FilesListRequest) (out FilesListResponse, err error) {
	text := ""
	if in.Path != nil {
		text = *in.Path
	}
	if *in.Source == "thread" {
		if err := checkID(*in.ID); err != nil {
			return out, err
		}
		return h.folder(c.Context(), c.Caller.Tenant.ID, *in.ID, text)
	}
	p, err := storage.ParsePath("path", text)
	if err != nil {
		return out, err
	}
	m, err := storage.Visible(c.Caller.Storage, *in.ID, p)
	if err != nil {
		return out, err
	}
	files, err := h.Folders.ListFolder(c.Context(), c.Caller.Tenant.ID, m)
	if err != nil {
		return out, err
	}
	return FilesListResponse{httpapi.Each(files, func(f storage.File) FileEntry {
		out := FileEntry{Name: f.Name, Path: f.Path, Size: f.Size, IsDirectory: f.IsFolder}
		if !f.Modified.IsZero() {
			out.Modified = &f.Modified
		}
		return out
	})}, nil
}
