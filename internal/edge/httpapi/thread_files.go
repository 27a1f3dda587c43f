package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
)

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "path")
	if err != nil {
		return err
	}
	files, err := s.threadFiles(r.Context(), caller.Tenant.ID, id, q.Get("path"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, FilesListResponse{files})
}

// threadFiles lists a folder of a thread.
func (s *Server) threadFiles(ctx context.Context, tenantID, id, folder string) ([]File, error) {
	tree, err := s.threads.Home(ctx, tenantID, id)
	if err != nil {
		return nil, err
	}
	entries, err := tree.List(folder)
	if err != nil {
		return nil, err
	}
	files := make([]File, len(entries))
	for i, e := range entries {
		files[i] = fileWire(e)
	}
	return files, nil
}

func fileWire(e thread.Entry) File {
	at := e.Modified.UTC()
	return File{Name: e.Name, Path: e.Path, Size: e.Size, Modified: &at, IsDirectory: e.Directory}
}

// onFile finds whose file is meant: a signed URL's, or the caller's.
func (s *Server) onFile(r *http.Request, scope tenant.Scope) (o thread.Owner, id string, err error) {
	if r.URL.Query().Has(signatureParam) {
		return s.signed(r)
	}
	caller, id, err := s.onThread(r, scope)
	if err != nil {
		return o, "", err
	}
	if _, err := parseQuery(r); err != nil {
		return o, "", err
	}
	return ownerOf(caller), id, nil
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) error {
	o, id, err := s.onFile(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	tree, err := s.threads.Home(r.Context(), o.Tenant, id)
	if err != nil {
		return err
	}
	name := r.PathValue("path")
	e, err := tree.Stat(name)
	if err != nil {
		return err
	}
	if e.Directory {
		return invalid("%q is a folder: GET /v1/threads/%s/files?path= lists it", name, id)
	}
	body := &laterReader{size: e.Size, from: func(at int64) (io.ReadCloser, error) {
		return tree.Open(r.Context(), name, at, -1)
	}}
	defer body.Close()
	return serveFile(w, r, e.Name, e.Modified, body)
}

// serveFile answers with a file, or what of it is asked for.
func serveFile(w http.ResponseWriter, r *http.Request, name string, modified time.Time, body *laterReader) error {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", contentDisposition(name))
	h.Set("Cache-Control", "no-store")
	out := &ranged{ResponseWriter: w}
	http.ServeContent(out, r, "", modified, body)
	if out.refused {
		h.Del("Content-Disposition")
		return &protocolError{http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "Range is beyond the end: Content-Range has the length"}
	}
	return body.err
}

// contentDisposition names a download; a name is any bytes.
func contentDisposition(name string) string {
	plain := make([]byte, 0, len(name))
	for i := range len(name) {
		if c := name[i]; c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			plain = append(plain, c)
		} else {
			plain = append(plain, '_')
		}
	}
	return fmt.Sprintf("attachment; filename=%q", plain)
}

// laterReader reads a file from wherever it is sought to, which is opened when it
// is first read.
type laterReader struct {
	size int64
	from func(at int64) (io.ReadCloser, error)

	at   int64
	open io.ReadCloser // at at; nil until it is read
	err  error         // what broke a download off
}

func (f *laterReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, os.ErrInvalid
	}
	if offset != f.at {
		f.Close()
	}
	f.at = offset
	return offset, nil
}

func (f *laterReader) Read(p []byte) (n int, err error) {
	if f.at >= f.size {
		return 0, io.EOF
	}
	if f.open == nil {
		if f.open, err = f.from(f.at); err != nil {
			f.err = err
			return 0, err
		}
	}
	n, err = f.open.Read(p)
	f.at += int64(n)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

func (f *laterReader) Close() error {
	if f.open == nil {
		return nil
	}
	open := f.open
	f.open = nil
	return open.Close()
}

func (s *Server) putFile(w http.ResponseWriter, r *http.Request) error {
	o, id, err := s.onFile(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	name := r.PathValue("path")
	var made thread.Entry
	err = s.editThread(w, r, o, id, func(ctx context.Context, t thread.Home, body io.Reader) (thread.Home, error) {
		next, err := t.WriteFile(ctx, name, body, thread.Quota{Bytes: o.Size})
		if err == nil {
			made, err = next.Stat(name)
		}
		return next, err
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, fileWire(made))
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	// A thread does not come into being by this.
	if _, err := s.threads.Get(r.Context(), caller.Tenant.ID, id); err != nil {
		return err
	}
	o := ownerOf(caller)
	err = s.threads.Edit(r.Context(), o, id, func(ctx context.Context, t thread.Home) (thread.Home, error) {
		return t.Remove(ctx, r.PathValue("path"))
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) exportThread(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	tree, err := s.threads.Home(r.Context(), caller.Tenant.ID, id)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-tar")
	h.Set("Content-Disposition", contentDisposition(path.Base(id)+".tar"))
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return tree.Export(r.Context(), w)
}

func (s *Server) importThread(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	o := ownerOf(caller)
	err = s.editThread(w, r, o, id, func(ctx context.Context, _ thread.Home, body io.Reader) (thread.Home, error) {
		return s.threads.Import(ctx, o, body)
	})
	if err != nil {
		return err
	}
	return s.showThread(r.Context(), w, o.Tenant, id)
}

// editThread changes a thread by what the request's body has.
func (s *Server) editThread(w http.ResponseWriter, r *http.Request, o thread.Owner, id string,
	change func(ctx context.Context, t thread.Home, body io.Reader) (thread.Home, error),
) error {
	if r.ContentLength > thread.MaxUpload {
		return fault.New(fault.TooLarge, "a body must have at most %d bytes", int64(thread.MaxUpload))
	}
	body := &upload{r: r.Body, conn: http.NewResponseController(w)}
	return s.threads.Edit(r.Context(), o, id, func(ctx context.Context, t thread.Home) (thread.Home, error) {
		return change(ctx, t, body)
	})
}

// upload is a body that may take long as a whole, but must not stand still.
type upload struct {
	r    io.Reader
	conn *http.ResponseController
}

func (u *upload) Read(p []byte) (int, error) {
	_ = u.conn.SetReadDeadline(time.Now().Add(patience)) // those of tests have none
	n, err := u.r.Read(p)
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, &protocolError{http.StatusRequestTimeout, "request_timeout", fmt.Sprintf("the request body stood still for %s", patience)}
	}
	return n, fault.Wrap(fault.Invalid, err, "the request body ended early; what was there is as it was")
}
