package openai

import (
	"cmp"
	"io"
	"mime"
	"mime/multipart"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// within runs f with the container that a request is about, and restarts its idle timeout.
func (h *Handlers) within(c *httpapi.Call, f func(container.ID, sandbox.Handle) error) error {
	sb, s, err := h.find(c)
	if err != nil {
		return err
	}
	if sb.State == sandbox.Destroyed {
		return fault.New(fault.NotFound, "the container has expired")
	}
	return h.Sandboxes.Within(c.Context(), h.Sandboxes.At(c, container.Session, string(sb.ID)), func(u sandbox.Handle) error {
		if _, err := h.Sandboxes.Sandboxes.Update(c.Context(), c.Caller, container.Session, string(sb.ID), s.Used(c.Caller, sb, 0)); err != nil {
			return err
		}
		return f(container.IDOf(sb.ID), u)
	})
}

// onFile runs f with the regular file that a request is about.
func (h *Handlers) onFile(c *httpapi.Call, f func(u sandbox.Handle, info *file.Info) error) error {
	return h.within(c, func(id container.ID, u sandbox.Handle) error {
		unknown := fault.New(fault.NotFound, "file not found in this container")
		at, ok := container.FileID(c.Path("file_id")).Path(id)
		if !ok {
			return unknown
		}
		c.Trail.Asks(at)
		info, err := u.Guest().Stat(c.Context(), at)
		if err != nil && fault.KindOf(err) == fault.NotFound || err == nil && info.Kind != file.Regular {
			return unknown
		}
		if err != nil {
			return err
		}
		return f(u, &info)
	})
}

func (h *Handlers) getFile(c *httpapi.Call) (out ContainerFile, err error) {
	err = h.onFile(c, func(u sandbox.Handle, info *file.Info) error {
		out = fileOf(container.IDOf(u.Sandbox().ID), info)
		return nil
	})
	return out, err
}

func (h *Handlers) deleteFile(c *httpapi.Call) (out DeletedContainerFile, err error) {
	err = h.onFile(c, func(u sandbox.Handle, info *file.Info) error {
		return u.Guest().Remove(c.Context(), info.Path, false)
	})
	return DeletedContainerFile{ID: c.Path("file_id"), Object: "container.file.deleted", Deleted: true}, err
}

func (h *Handlers) content(c *httpapi.Call) error {
	return h.onFile(c, func(u sandbox.Handle, info *file.Info) error {
		now, begun, err := u.Guest().Read(c.Context(), info.Path, 0, -1)
		if err != nil {
			return err
		}
		body := file.NewSeekable(now.Size, begun, func(offset int64) (io.ReadCloser, error) {
			_, content, err := u.Guest().Read(c.Context(), info.Path, offset, -1)
			return content, err
		})
		defer body.Close()
		return c.ServeFile(path.Base(info.Path), now.Modified, body)
	})
}

func (h *Handlers) listFiles(c *httpapi.Call) (out ContainerFileList, err error) {
	err = h.within(c, func(id container.ID, u sandbox.Handle) error {
		found, err := container.Files(c.Context(), u.Guest())
		if err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b file.Info) int {
			return cmp.Or(a.Modified.Compare(b.Modified), cmp.Compare(a.Path, b.Path))
		})
		all := httpapi.Each(found, func(f file.Info) ContainerFile { return fileOf(id, &f) })
		out.Object = "list"
		out.Data, out.FirstID, out.LastID, out.HasMore, err = pageOf(c, all, func(one *ContainerFile) *string { return &one.ID })
		return err
	})
	return out, err
}

// upload writes the file of a form.
func (h *Handlers) upload(c *httpapi.Call) (out ContainerFile, err error) {
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	switch {
	case err == nil && media == "application/json":
		return out, httpapi.Invalid("file_id is not supported: send the file in a form, as multipart/form-data with the field file")
	case err != nil || media != "multipart/form-data" || params["boundary"] == "":
		return out, fault.New(fault.Unsupported, "Content-Type must be multipart/form-data")
	}
	err = h.within(c, func(id container.ID, u sandbox.Handle) error {
		name, content, err := fileOfForm(multipart.NewReader(c.Content(), params["boundary"]))
		if err != nil {
			return err
		}
		at := path.Join(container.Dir, name)
		c.Trail.Asks(at)
		if _, err := u.Guest().Create(c.Context(), at, file.CreateOptions{Mode: container.FileMode}, content); err != nil {
			return err
		}
		info, err := u.Guest().Stat(c.Context(), at)
		out = fileOf(id, &info)
		return err
	})
	return out, err
}

// fileOfForm is the file of a form, and its name.
func fileOfForm(form *multipart.Reader) (name string, content io.Reader, err error) {
	part, err := form.NextPart()
	if err == io.EOF {
		return "", nil, httpapi.Invalid("the form must have the field file")
	}
	if err != nil {
		return "", nil, httpapi.BadForm(err)
	}
	if part.FormName() != "file" {
		return "", nil, httpapi.Invalid("the form must have the field file alone; %.40q is not supported", part.FormName())
	}
	name = part.FileName() // without folders
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
		return "", nil, httpapi.Invalid("the file must have a name that does not begin with a dot")
	}
	return name, httpapi.FormContent{Reader: part}, nil
}
