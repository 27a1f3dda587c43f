package sandbox

import (
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// maxDepth is how deep a listing can go.
const maxDepth = 100

func (h *Handlers) files() []httpapi.Operation {
	const (
		get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
		files               = sandboxPath + "/files"
		archive             = sandboxPath + "/archive"
	)
	at := httpapi.Param{Name: "path", Type: httpapi.Bytes, Required: true, Doc: "An absolute path, or one from /home/user. Its bytes need not be UTF-8.", Example: "/home/user/data.csv"}
	folder := httpapi.Param{Name: "path", Type: httpapi.Bytes, Doc: "The folder; /home/user if not given."}
	boolean := func(name, doc string) httpapi.Param {
		return httpapi.Param{Name: name, Type: httpapi.Bool, Doc: doc}
	}
	one := []httpapi.Answer{httpapi.OK(SandboxFile{}, "The file or folder at the path; for a symlink, the link itself.")}
	return []httpapi.Operation{
		{
			Method: get, Path: files, ID: "readSandboxFile", Summary: "Read a file", Description: "The bytes are streamed, with the permissions of the sandbox's user. `Range` has a part. A folder returns 400: list it, or get it as an archive.", Audit: "file_read", Params: onOne(at),
			Answers: []httpapi.Answer{
				httpapi.Download(httpapi.OctetStream, "Its bytes."), httpapi.Part("With Range: a part of them."),
				httpapi.Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable: Range is beyond the end of the file."),
			},
			Serve: httpapi.Writes(h.readFile),
		},
		{
			Method: put, Path: files, ID: "writeSandboxFile", Summary: "Write a file", Description: "The body is the file's content, streamed. Its size is bounded by the sandbox's disk.", Audit: "file_write",
			Params: onOne(at, boolean("append", "Add to the file instead of replacing it."), httpapi.Param{Name: "mode", Doc: "Octal permissions.", Example: "644"}),
			Body:   &httpapi.Body{Media: httpapi.OctetStream},
			Answers: []httpapi.Answer{
				httpapi.OK(SandboxWritten{}, "Folders above it are created. The file is replaced when all of its bytes have arrived."),
			},
			Serve: httpapi.Returns(h.writeFile),
		},
		{
			Method: del, Path: files, ID: "deleteSandboxFile", Summary: "Delete a file or folder", Description: "A folder that is not empty needs `recursive=true`. A link is deleted, not what it leads to.", Audit: "file_delete",
			Params: onOne(at, boolean("recursive", "With everything in a folder.")), Answers: []httpapi.Answer{gone}, Serve: httpapi.Does(h.deleteFile),
		},
		{
			Method: get, Path: files + "/stat", ID: "statSandboxFile", Summary: "Describe a file", Description: "Kind, size, mode, owner and times. A link is described itself, and not what it leads to.", Params: onOne(at), Answers: one,
			Serve: httpapi.Returns(h.statFile),
		},
		{
			Method: get, Path: files + "/list", ID: "listSandboxFiles", Summary: "List a folder", Description: "The entries of one folder by name, or with `depth` also those of folders below it. At most 10,000 entries are listed.",
			Params: onOne(folder,
				httpapi.Param{Name: "depth", Type: httpapi.Int, Min: 1, Max: maxDepth, Default: 1, Doc: "1, if not given, is the folder alone."},
				httpapi.Param{Name: "limit", Type: httpapi.Int, Min: 1, Max: file.MaxEntries, Default: file.MaxEntries, Doc: "Entries at most."}),
			Answers: []httpapi.Answer{httpapi.OK(SandboxFiles{}, "By path.")}, Serve: httpapi.Returns(h.listFiles),
		},
		{
			Method: get, Path: files + "/watch", ID: "watchSandboxFiles", Summary: "Follow changes of files", Description: "A line for each file that is made, changed, moved or deleted in the folder, as long as the connection is open. It counts as a use: the sandbox does not sleep meanwhile.", Audit: "file_watch",
			Params:  onOne(folder, boolean("recursive", "Also below the folder.")),
			Answers: []httpapi.Answer{httpapi.Stream(SandboxChange{}, "One line a change.")}, Serve: httpapi.Writes(h.watchFiles),
		},
		{
			Method: post, Path: files + "/directories", ID: "makeSandboxFolder", Summary: "Create a folder and those above it", Description: "An existing folder is no error.", Audit: "file_mkdir", Params: onOne(at),
			Answers: one, Serve: httpapi.Returns(h.makeFolder),
		},
		{
			Method: post, Path: files + "/move", ID: "moveSandboxFile", Summary: "Rename a file or folder", Description: "A file that is at `to` is replaced if `replace` is true; otherwise the call returns 409. Both paths are in the same sandbox: the tool `transfer` copies between two.", Audit: "file_move",
			Params: onOne(
				httpapi.Param{Name: "from", Type: httpapi.Bytes, Required: true, Doc: "A path, as in path.", Example: "/home/user/a.txt"},
				httpapi.Param{Name: "to", Type: httpapi.Bytes, Required: true, Doc: "Its new name.", Example: "/home/user/b.txt"},
				boolean("replace", "Replace an existing file at to.")),
			Answers: one, Serve: httpapi.Returns(h.moveFile),
		},
		{
			Method: get, Path: archive, ID: "packSandbox", Summary: "Get a file or folder as a tar archive", Description: "A file alone, or a folder with all below it, as a PAX archive that is streamed. Owners and modes are as programs see them. A sandbox that sleeps is woken.", Audit: "archive_read", Params: onOne(at),
			Answers: []httpapi.Answer{httpapi.Download(httpapi.Tar, "Its own entry is named \".\".")}, Serve: httpapi.Writes(h.pack),
		},
		{
			Method: put, Path: archive, ID: "unpackSandbox", Summary: "Unpack a tar archive", Description: "The folder at `path` is made if it is not there; files of the archive replace those of the same path, and others stay. Entries that would lead out of the folder are refused. It is streamed, and bounded by the sandbox's disk.", Audit: "archive_write", Params: onOne(at), Body: &httpapi.Body{Media: httpapi.Tar},
			Answers: []httpapi.Answer{httpapi.OK(SandboxUnpacked{}, "The entry \".\" is at path; all others are below it.")}, Serve: httpapi.Returns(h.unpack),
		},
	}
}

// file finds the sandbox and the path that a request is about.
func (h *Handlers) file(c *httpapi.Call) (sandboxes.Ref, string, error) {
	r, err := h.ref(c)
	if err != nil {
		return r, "", err
	}
	at := c.Text("path")
	c.Trail.Asks(at)
	return r, at, nil
}

// onFile runs f with the sandbox and the path that a request is about.
func onFile[T any](c *httpapi.Call, h *Handlers, f func(*sandboxes.Use, string) (T, error)) (out T, err error) {
	r, at, err := h.file(c)
	if err != nil {
		return out, err
	}
	return sandboxes.With(c.Context(), h.Service, r, func(u *sandboxes.Use) (T, error) { return f(u, at) })
}

// described renders a file.
func described(info file.Info, err error) (out SandboxFile, _ error) {
	if err != nil {
		return out, err
	}
	return fileOf(info), nil
}

// folderOf is the folder that a request is about: the home if it does not say.
func folderOf(c *httpapi.Call) string {
	if at := c.Text("path"); at != "" {
		return at
	}
	return runtime.Home
}

func (h *Handlers) readFile(c *httpapi.Call) error {
	_, err := onFile(c, h, func(u *sandboxes.Use, at string) (out nothing, err error) {
		found, err := u.ReadFile(c.Context(), at)
		if err != nil {
			return out, err
		}
		defer found.Body.Close()
		return out, c.ServeContent(path.Base(at), found)
	})
	return err
}

func (h *Handlers) writeFile(c *httpapi.Call) (out SandboxWritten, err error) {
	r, at, err := h.file(c)
	if err != nil {
		return out, err
	}
	o := file.CreateOptions{Append: c.Bool("append")}
	if c.Has("mode") {
		mode, err := strconv.ParseUint(c.Text("mode"), 8, 32)
		if err != nil || mode == 0 || mode > 0o777 {
			return out, httpapi.Invalid("mode must be octal permissions, from 001 to 777")
		}
		o.Mode = fs.FileMode(mode)
	}
	return sandboxes.With(c.Context(), h.Service, r, func(u *sandboxes.Use) (SandboxWritten, error) {
		size, err := u.Guest().Create(c.Context(), at, o, c.Content())
		return SandboxWritten{size}, err
	})
}

func (h *Handlers) deleteFile(c *httpapi.Call) error {
	_, err := onFile(c, h, func(u *sandboxes.Use, at string) (nothing, error) {
		return nothing{}, u.Guest().Remove(c.Context(), at, c.Bool("recursive"))
	})
	return err
}

func (h *Handlers) statFile(c *httpapi.Call) (SandboxFile, error) {
	return onFile(c, h, func(u *sandboxes.Use, at string) (SandboxFile, error) {
		return described(u.Guest().Stat(c.Context(), at))
	})
}

func (h *Handlers) listFiles(c *httpapi.Call) (SandboxFiles, error) {
	return use(c, h, func(u *sandboxes.Use) (out SandboxFiles, err error) {
		found, err := u.Guest().List(c.Context(), folderOf(c), file.ListOptions{Depth: int(c.Int("depth")), Limit: int(c.Int("limit"))})
		if err != nil {
			return out, err
		}
		return SandboxFiles{Data: httpapi.Each(found.Entries, fileOf), Truncated: found.Truncated}, nil
	})
}

func (h *Handlers) makeFolder(c *httpapi.Call) (SandboxFile, error) {
	return onFile(c, h, func(u *sandboxes.Use, at string) (SandboxFile, error) {
		return described(u.MakeFolder(c.Context(), at))
	})
}

func (h *Handlers) moveFile(c *httpapi.Call) (out SandboxFile, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	from, to := c.Text("from"), c.Text("to")
	c.Trail.Asks(from + "\x00" + to)
	return sandboxes.With(c.Context(), h.Service, r, func(u *sandboxes.Use) (SandboxFile, error) {
		return described(u.MoveFile(c.Context(), from, to, c.Bool("replace")))
	})
}

func (h *Handlers) pack(c *httpapi.Call) error {
	_, err := onFile(c, h, func(u *sandboxes.Use, at string) (out nothing, err error) {
		archive, err := u.Guest().Pack(c.Context(), at)
		if err != nil {
			return out, err
		}
		defer archive.Close()
		c.Attachment(path.Base(at) + ".tar")
		c.Start(httpapi.Tar)
		if c.R.Method != http.MethodHead {
			_, err = io.Copy(c.W, archive)
		}
		return out, err
	})
	return err
}

func (h *Handlers) unpack(c *httpapi.Call) (SandboxUnpacked, error) {
	return onFile(c, h, func(u *sandboxes.Use, at string) (SandboxUnpacked, error) {
		got, err := u.Guest().Unpack(c.Context(), at, c.Content())
		return SandboxUnpacked{got.Files, got.Bytes}, err
	})
}

func (h *Handlers) watchFiles(c *httpapi.Call) error {
	r, err := h.ref(c)
	if err != nil {
		return err
	}
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	c.Trail.Asks(folderOf(c))
	ctx, stop := c.Living(c.Context())
	defer stop()
	return h.Service.Within(ctx, r, func(u *sandboxes.Use) error {
		changes, err := u.Guest().Watch(ctx, folderOf(c), c.Bool("recursive"))
		if err != nil {
			return err
		}
		defer changes.Close()
		out := c.Events(SandboxChange{Type: "keepalive"})
		defer out.End()
		for {
			e, err := changes.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			shown, raw := pathOf(e.Path)
			if err := out.Send(SandboxChange{Type: e.Change.String(), Path: shown, PathBase64: raw, IsDirectory: e.Folder}); err != nil {
				return err
			}
		}
	})
}
