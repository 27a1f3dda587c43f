package e2b

import (
	"context"
	"errors"
	"io"

	"github.com/atoll-run/atoll/internal/control/filewatch"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// FileEvent is a change below a watched folder.
type FileEvent struct {
	Name  string `json:"name"` // from the folder
	Type  string `json:"type"`
	Entry *Entry `json:"entry,omitzero"`
}

// WatchResponse is a message of a watch: one of its fields.
type WatchResponse struct {
	Start      *Empty     `json:"start,omitzero"`
	Filesystem *FileEvent `json:"filesystem,omitzero"`
	Keepalive  *Empty     `json:"keepalive,omitzero"`
}

// WatcherID names a watcher.
type WatcherID struct {
	ID string `json:"watcherId"`
}

// WatcherEvents are the events since the last call.
type WatcherEvents struct {
	Events []FileEvent `json:"events"`
}

var changes = map[file.Change]string{file.Created: "EVENT_TYPE_CREATE", file.Modified: "EVENT_TYPE_WRITE", file.Removed: "EVENT_TYPE_REMOVE"}

func changeOf(e filewatch.Event) FileEvent {
	out := FileEvent{Name: e.Name, Type: changes[e.Change]}
	if e.Info != nil {
		out.Entry = new(entryOf(*e.Info))
	}
	return out
}

func (in *PathRequest) folder() *filewatch.Folder {
	return &filewatch.Folder{Path: sandboxes.Home(in.Path), Recursive: in.Recursive, Entries: in.Entries}
}

func (d *Handlers) watchDir(ctx context.Context, c *httpapi.Call, in *PathRequest, to *sender[WatchResponse]) error {
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	return d.onPath(ctx, c, in.Path, func(u *sandboxes.Use, _ string) error {
		err := filewatch.Watch(ctx, u, in.folder(),
			func() error { return to.begin(&WatchResponse{Start: &Empty{}}, &WatchResponse{Keepalive: &Empty{}}) },
			func(e filewatch.Event) error { return to.send(&WatchResponse{Filesystem: new(changeOf(e))}) })
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
}

// owner is the sandbox of the watcher that a call is about.
func (d *Handlers) owner(c *httpapi.Call) (filewatch.Owner, error) {
	claim, err := d.claimOf(c.R)
	return filewatch.Owner{Tenant: claim.Tenant, Sandbox: claim.Sandbox}, err
}

func (d *Handlers) createWatcher(ctx context.Context, c *httpapi.Call, in *PathRequest) (*WatcherID, error) {
	of, err := d.owner(c)
	if err != nil {
		return nil, err
	}
	if err := c.Draining(); err != nil {
		return nil, err
	}
	id, err := d.watchers.Start(ctx, of, c.Authorized, func(life context.Context, ready func() error, tell func(filewatch.Event) error) error {
		return d.onPath(life, c, in.Path, func(u *sandboxes.Use, _ string) error { return filewatch.Watch(life, u, in.folder(), ready, tell) })
	})
	if err != nil {
		return nil, err
	}
	return &WatcherID{id}, nil
}

func (d *Handlers) watcherEvents(_ context.Context, c *httpapi.Call, in *WatcherID) (*WatcherEvents, error) {
	of, err := d.owner(c)
	if err != nil {
		return nil, err
	}
	events, err := d.watchers.Events(in.ID, of)
	if err != nil {
		return nil, err
	}
	return &WatcherEvents{httpapi.Each(events, changeOf)}, nil
}

func (d *Handlers) removeWatcher(_ context.Context, c *httpapi.Call, in *WatcherID) (*Empty, error) {
	of, err := d.owner(c)
	if err != nil {
		return nil, err
	}
	if err := d.watchers.Remove(in.ID, of); err != nil {
		return nil, err
	}
	return &Empty{}, nil
}
