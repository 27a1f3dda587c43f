package httpapi

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// filePath is the parameter that says which file is meant. Its value is bytes.
var filePath = []string{"path"}

// onSandboxFile finds the caller, the sandbox and the path.
func (s *Server) onSandboxFile(r *http.Request, known ...string) (*place, string, error) {
	p, err := s.onSandbox(r, filePath, known...)
	if err != nil {
		return nil, "", err
	}
	at := p.query.Get("path")
	if at == "" {
		return nil, "", invalid("path is required: an absolute path, or one from /home/user")
	}
	p.trail.asks(at)
	return p, at, nil
}

func (s *Server) getSandboxFile(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		info, begun, err := h.Guest().Read(r.Context(), at, 0, -1)
		if err != nil {
			return err
		}
		body := &laterReader{size: info.Size, open: begun, from: func(offset int64) (io.ReadCloser, error) {
			_, content, err := h.Guest().Read(r.Context(), at, offset, -1)
			return content, err
		}}
		defer body.Close()
		if info.Size > 0 {
			return serveFile(w, r, path.Base(at), info.Modified, body)
		}
		// What /proc has is larger than it says.
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, err = io.Copy(w, begun)
		}
		return err
	})
}

func (s *Server) putSandboxFile(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r, "append", "mode")
	if err != nil {
		return err
	}
	var o file.CreateOptions
	if o.Append, err = queryBool(p.query, "append"); err != nil {
		return err
	}
	if p.query.Has("mode") {
		mode, err := strconv.ParseUint(p.query.Get("mode"), 8, 32)
		if err != nil || mode == 0 || mode > 0o777 {
			return invalid("mode must be octal permissions, from 001 to 777")
		}
		o.Mode = fs.FileMode(mode)
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		size, err := h.Guest().Create(r.Context(), at, o, &upload{r: r.Body, conn: http.NewResponseController(w)})
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, SandboxWritten{size})
	})
}

func (s *Server) deleteSandboxFile(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r, "recursive")
	if err != nil {
		return err
	}
	recursive, err := queryBool(p.query, "recursive")
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		if err := h.Guest().Remove(r.Context(), at, recursive); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func (s *Server) statSandboxFile(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		return s.showSandboxFile(r.Context(), w, h, at, http.StatusOK)
	})
}

func (s *Server) showSandboxFile(ctx context.Context, w http.ResponseWriter, h sandbox.Handle, at string, status int) error {
	info, err := h.Guest().Stat(ctx, at)
	if err != nil {
		return err
	}
	return writeJSON(w, status, sandboxFileWire(info))
}

// maxDepth is how deep a listing can go.
const maxDepth = 100

func (s *Server) listSandboxFiles(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, filePath, "depth", "limit")
	if err != nil {
		return err
	}
	depth, err := queryInt(p.query, "depth", 1, 1, maxDepth)
	if err != nil {
		return err
	}
	limit, err := queryInt(p.query, "limit", file.MaxEntries, 1, file.MaxEntries)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		found, err := h.Guest().List(r.Context(), p.folder(), file.ListOptions{Depth: int(depth), Limit: int(limit)})
		if err != nil {
			return err
		}
		body := SandboxFiles{Data: make([]SandboxFile, len(found.Entries)), Truncated: found.Truncated}
		for i, f := range found.Entries {
			body.Data[i] = sandboxFileWire(f)
		}
		return writeJSON(w, http.StatusOK, body)
	})
}

// folder is the folder that a request means: the home if it does not say.
func (p *place) folder() string {
	if at := p.query.Get("path"); at != "" {
		return at
	}
	return "/home/user"
}

func (s *Server) makeSandboxFolder(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r)
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		if err := h.Guest().Mkdir(r.Context(), at); err != nil {
			return err
		}
		return s.showSandboxFile(r.Context(), w, h, at, http.StatusOK)
	})
}

func (s *Server) moveSandboxFile(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, []string{"from", "to"}, "replace")
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	from, to := p.query.Get("from"), p.query.Get("to")
	if from == "" || to == "" {
		return invalid("from and to are required: paths, as parameters of the query")
	}
	p.trail.asks(from + "\x00" + to)
	replace, err := queryBool(p.query, "replace")
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		if err := h.Guest().Move(r.Context(), from, to, replace); err != nil {
			return err
		}
		return s.showSandboxFile(r.Context(), w, h, to, http.StatusOK)
	})
}

func (s *Server) packSandbox(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		archive, err := h.Guest().Pack(r.Context(), at)
		if err != nil {
			return err
		}
		defer archive.Close()
		head := w.Header()
		head.Set("Content-Type", "application/x-tar")
		head.Set("Content-Disposition", contentDisposition(path.Base(at)+".tar"))
		head.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, err = io.Copy(w, archive)
		}
		return err
	})
}

func (s *Server) unpackSandbox(w http.ResponseWriter, r *http.Request) error {
	p, at, err := s.onSandboxFile(r)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		got, err := h.Guest().Unpack(r.Context(), at, &upload{r: r.Body, conn: http.NewResponseController(w)})
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, SandboxUnpacked{got.Files, got.Bytes})
	})
}

// watchKeepalive is how often a watch that has nothing to tell says that it lives.
const watchKeepalive = 15 * time.Second

func (s *Server) watchSandboxFiles(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, filePath, "recursive")
	if err != nil {
		return err
	}
	recursive, err := queryBool(p.query, "recursive")
	if err != nil {
		return err
	}
	p.trail.asks(p.folder())
	ctx, stop := s.living(r.Context())
	defer stop()
	return s.inSandbox(ctx, p, func(h sandbox.Handle) error {
		changes, err := h.Guest().Watch(ctx, p.folder(), recursive)
		if err != nil {
			return err
		}
		defer changes.Close()
		out := newLines(w, r, SandboxChange{Type: "keepalive"})
		defer out.end()
		for {
			e, err := changes.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			shown, raw := pathWire(e.Path)
			if err := out.send(SandboxChange{Type: e.Change.String(), Path: shown, PathBase64: raw, IsDirectory: e.Folder}); err != nil {
				return err
			}
		}
	})
}
