package e2b

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (d *Handlers) filesystem() []httpapi.Operation {
	const service = "/filesystem.Filesystem/"
	return []httpapi.Operation{
		unary(service+"Stat", "", d.stat),
		unary(service+"ListDir", "", d.listDir),
		unary(service+"MakeDir", "file_mkdir", d.makeDir),
		unary(service+"Move", "file_move", d.move),
		unary(service+"Remove", "file_delete", d.remove),
		stream(service+"WatchDir", "file_watch", d.watchDir),
		unary(service+"CreateWatcher", "file_watch", d.createWatcher),
		unary(service+"GetWatcherEvents", "", d.watcherEvents),
		unary(service+"RemoveWatcher", "", d.removeWatcher),
	}
}

// PathRequest is about a path.
type PathRequest struct {
	Path      string `json:"path,omitzero"`
	Depth     uint32 `json:"depth,omitzero"`        // of ListDir
	Recursive bool   `json:"recursive,omitzero"`    // of watches
	Entries   bool   `json:"includeEntry,omitzero"` // of watches
}

// MoveRequest renames a file.
type MoveRequest struct {
	Source      string `json:"source,omitzero"`
	Destination string `json:"destination,omitzero"`
}

// Entry is a file.
type Entry struct {
	Name        string     `json:"name"`
	Type        string     `json:"type"`
	Path        string     `json:"path"`
	Size        int64      `json:"size,string"`
	Mode        uint32     `json:"mode"`
	Permissions string     `json:"permissions"`
	Owner       string     `json:"owner"`
	Group       string     `json:"group"`
	Modified    *time.Time `json:"modifiedTime,omitzero"`
	Target      *string    `json:"symlinkTarget,omitzero"`
}

// EntryResponse is an answer with a file.
type EntryResponse struct {
	Entry Entry `json:"entry"`
}

// EntryList is what a folder has.
type EntryList struct {
	Entries []Entry `json:"entries"`
}

var types = map[file.Kind]string{file.Regular: "FILE_TYPE_FILE", file.Folder: "FILE_TYPE_DIRECTORY", file.Link: "FILE_TYPE_SYMLINK", file.Other: "FILE_TYPE_UNSPECIFIED"}

func owner(id uint32) string {
	switch id {
	case 0:
		return "root"
	case runtime.UID:
		return "user"
	}
	return strconv.FormatUint(uint64(id), 10)
}

func entryOf(f file.Info) Entry {
	at := strings.ToValidUTF8(f.Path, "\ufffd")
	modified, mode := f.Modified.UTC(), f.Mode
	switch f.Kind {
	case file.Folder:
		mode |= fs.ModeDir
	case file.Link:
		mode |= fs.ModeSymlink
	}
	e := Entry{
		Name: path.Base(at), Type: types[f.Kind], Path: at, Size: f.Size, Mode: uint32(f.Mode.Perm()), Permissions: mode.String(),
		Owner: owner(f.UID), Group: owner(f.GID), Modified: &modified,
	}
	if f.Kind == file.Link {
		target := strings.ToValidUTF8(f.Target, "\ufffd")
		e.Target = &target
	}
	return e
}

// onPath runs f with the sandbox that a call about a path is about.
func (d *Handlers) onPath(ctx context.Context, c *httpapi.Call, at string, f func(u *sandboxes.Use, at string) error) error {
	at = sandboxes.Home(at)
	if strings.ContainsRune(at, 0) {
		return httpapi.Invalid("path must not contain a NUL character")
	}
	return d.within(ctx, c, func(u *sandboxes.Use) error {
		c.Trail.Asks(at)
		return f(u, at)
	})
}

func (d *Handlers) stat(ctx context.Context, c *httpapi.Call, in *PathRequest) (*EntryResponse, error) {
	out := &EntryResponse{}
	return out, d.onPath(ctx, c, in.Path, func(u *sandboxes.Use, at string) error { return out.of(u.Guest().Stat(ctx, at)) })
}

// of renders a file.
func (out *EntryResponse) of(info file.Info, err error) error {
	if err == nil {
		out.Entry = entryOf(info)
	}
	return err
}

// maxDepth is how deep a listing can go.
const maxDepth = 100

func (d *Handlers) listDir(ctx context.Context, c *httpapi.Call, in *PathRequest) (*EntryList, error) {
	out := &EntryList{Entries: []Entry{}}
	return out, d.onPath(ctx, c, in.Path, func(u *sandboxes.Use, at string) error {
		if in.Depth > maxDepth {
			return httpapi.Invalid("depth must be at most %d", maxDepth)
		}
		found, err := u.Guest().List(ctx, at, file.ListOptions{Depth: int(in.Depth)})
		if err != nil {
			return err
		}
		if found.Truncated {
			return connect.NewError(connect.CodeOutOfRange, fmt.Errorf("there are more than %d entries: list a smaller part", file.MaxEntries))
		}
		out.Entries = httpapi.Each(found.Entries, entryOf)
		return nil
	})
}

func (d *Handlers) makeDir(ctx context.Context, c *httpapi.Call, in *PathRequest) (*EntryResponse, error) {
	out := &EntryResponse{}
	return out, d.onPath(ctx, c, in.Path, func(u *sandboxes.Use, at string) error {
		switch there, err := u.Guest().Stat(ctx, at); {
		case err == nil && there.Kind == file.Folder:
			return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory already exists: %s", strings.ToValidUTF8(at, "\ufffd")))
		case err == nil && there.Kind != file.Link:
			return httpapi.Invalid("path already exists but it is not a directory")
		}
		return out.of(u.MakeFolder(ctx, at))
	})
}

func (d *Handlers) move(ctx context.Context, c *httpapi.Call, in *MoveRequest) (*EntryResponse, error) {
	out := &EntryResponse{}
	return out, d.onPath(ctx, c, in.Source, func(u *sandboxes.Use, from string) error {
		to := sandboxes.Home(in.Destination)
		c.Trail.Asks(from + "\x00" + to)
		return out.of(u.MoveFile(ctx, from, to, true))
	})
}

// remove removes a file or a folder with all in it, if there is one.
func (d *Handlers) remove(ctx context.Context, c *httpapi.Call, in *PathRequest) (*Empty, error) {
	return &Empty{}, d.onPath(ctx, c, in.Path, func(u *sandboxes.Use, at string) error {
		err := u.Guest().Remove(ctx, at, true)
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	})
}
