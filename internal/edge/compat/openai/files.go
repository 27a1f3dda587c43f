package openai

import (
	"io"
	"mime"
	"mime/multipart"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// within runs f with the container that a request is about, and restarts its idle timeout.
func (h *Handlers) within(c *httpapi.Call, f func(container.ID, *sandboxes.Use) error) error {
	id := container.ID(c.Path("container_id"))
	return h.Sandboxes.WithinContainer(c.Context(), c.Caller, c.Trail, id, func(u *sandboxes.Use) error { return f(id, u) })
}

// onFile runs f with the regular file that a request is about.
func (h *Handlers) onFile(c *httpapi.Call, f func(u *sandboxes.Use, info *file.Info) error) error {
	return h.within(c, func(_ container.ID, u *sandboxes.Use) error {
		info, err := u.ContainerFile(c.Context(), container.FileID(c.Path("file_id")))
		if err != nil {
			return err
		}
		return f(u, &info)
	})
}

func (h *Handlers) getFile(c *httpapi.Call) (out ContainerFile, err error) {
	err = h.onFile(c, func(u *sandboxes.Use, info *file.Info) error {
		out = fileOf(container.IDOf(u.Sandbox().ID), info)
		return nil
	})
	return out, err
}

func (h *Handlers) deleteFile(c *httpapi.Call) (out DeletedContainerFile, err error) {
	err = h.onFile(c, func(u *sandboxes.Use, info *file.Info) error {
		return u.Guest().Remove(c.Context(), info.Path, false)
	})
	return DeletedContainerFile{ID: c.Path("file_id"), Object: "container.file.deleted", Deleted: true}, err
}

func (h *Handlers) content(c *httpapi.Call) error {
	return h.onFile(c, func(u *sandboxes.Use, info *file.Info) error {
		found, err := u.ReadFile(c.Context(), info.Path)
		if err != nil {
			return err
		}
		defer found.Body.Close()
		return c.ServeFile(path.Base(info.Path), found.Modified, found.Body)
	})
}

func (h *Handlers) listFiles(c *httpapi.Call) (out ContainerFileList, err error) {
	err = h.within(c, func(id container.ID, u *sandboxes.Use) error {
		found, err := u.ContainerFiles(c.Context())
		if err != nil {
			return err
		}
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
	err = h.within(c, func(id container.ID, u *sandboxes.Use) error {
		name, content, err := fileOfForm(multipart.NewReader(c.Content(), params["boundary"]))
		if err != nil {
			return err
		}
		at := path.Join(container.Dir, name)
		c.Trail.Asks(at)
		info, err := u.WriteFile(c.Context(), at, file.CreateOptions{Mode: container.FileMode}, content)
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
