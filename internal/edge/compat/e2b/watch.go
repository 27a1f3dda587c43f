package e2b

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// FileEvent is a change below a watched folder.
type FileEvent struct {
	Name  string `json:"name"` // from the folder
	Type  string `json:"type"`
	Entry *Entry `json:"entry,omitzero"`
}

// size is about how many bytes an event takes in memory.
func (e *FileEvent) size() int {
	n := len(e.Name) + 64
	if e.Entry != nil {
		n += len(e.Entry.Path) + 256
		if e.Entry.Target != nil {
			n += len(*e.Entry.Target)
		}
	}
	return n
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

// unfinished is the name that a file has while the sandbox's guest writes it.
var unfinished = regexp.MustCompile(`^\.atoll-[0-9a-f]{12}$`)

// watch calls tell for every change of a folder until it fails, or ctx ends.
func watch(ctx context.Context, u *sandboxes.Use, in *PathRequest, ready func() error, tell func(FileEvent) error) error {
	at := home(in.Path)
	there, err := u.Guest().Stat(ctx, at)
	if err == nil && there.Kind == file.Link {
		there, err = u.Guest().Stat(ctx, at+"/.")
	}
	if err != nil {
		return err
	}
	if there.Kind != file.Folder {
		return httpapi.Invalid("path is not a directory: %.200q", at)
	}
	events, err := u.Guest().Watch(ctx, at, in.Recursive)
	if err != nil {
		return err
	}
	defer events.Close()
	if err := ready(); err != nil {
		return err
	}
	for {
		e, err := events.Next()
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if e.Change == file.Lost {
			return fault.New(fault.Exhausted, "there were more changes than could be told: watch anew")
		}
		if unfinished.MatchString(path.Base(e.Path)) {
			continue
		}
		event := FileEvent{Name: below(path.Clean(there.Path), e.Path), Type: changes[e.Change]}
		if in.Entries && e.Change != file.Removed {
			if info, err := u.Guest().Stat(ctx, e.Path); err == nil {
				entry := entryOf(info)
				event.Entry = &entry
			}
		}
		if err := tell(event); err != nil {
			return err
		}
	}
}

// below is a path from a folder.
func below(folder, at string) string {
	return strings.ToValidUTF8(strings.TrimPrefix(strings.TrimPrefix(at, folder), "/"), "\ufffd")
}

func (d *Handlers) watchDir(ctx context.Context, c *httpapi.Call, in *PathRequest, to *sender[WatchResponse]) error {
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	return d.onPath(ctx, c, in.Path, func(u *sandboxes.Use, _ string) error {
		err := watch(ctx, u, in,
			func() error { return to.begin(&WatchResponse{Start: &Empty{}}, &WatchResponse{Keepalive: &Empty{}}) },
			func(e FileEvent) error { return to.send(&WatchResponse{Filesystem: &e}) })
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
}

// A watcher is a watch that is asked for its events, by clients that cannot keep a stream
// open. It is in the memory of this process, keeps its sandbox awake, and ends when it is
// not asked for watcherIdle, when its key is revoked, and when its sandbox is paused or
// killed. One whose sandbox went away is kept for watcherOver, to tell why.
const (
	watcherIdle    = 10 * time.Minute
	watcherOver    = time.Minute
	watcherEvents  = 4096      // that wait to be asked for
	watcherBytes   = 512 << 10 // of them
	maxWatchers    = 32        // of a sandbox
	tenantWatchers = 256
	allWatchers    = 1024
)

type watchers struct {
	life
	mu  sync.Mutex
	all map[string]*watcher // guarded by mu; by id
}

type watcher struct {
	claim  claim
	cancel context.CancelCauseFunc
	idle   *time.Timer
	ended  chan struct{} // closed when it does not use its sandbox any more

	mu     sync.Mutex
	events []FileEvent // guarded by mu
	bytes  int         // guarded by mu; of events
	err    error       // guarded by mu; why there are no more
}

var errForgotten = errors.New("the watcher was not asked for its events")

func (w *watchers) open() {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.all = map[string]*watcher{}
}

func (w *watchers) close() {
	w.cancel()
	w.wg.Wait()
}

// add makes room for a watcher of a sandbox.
func (w *watchers) add(of claim) (id string, added *watcher, ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return "", nil, nil, fault.New(fault.Unavailable, "%s", httpapi.ErrShutdown)
	}
	ofSandbox, ofTenant := 0, 0
	for _, other := range w.all {
		if other.claim.Sandbox == of.Sandbox {
			ofSandbox++
		}
		if other.claim.Tenant == of.Tenant {
			ofTenant++
		}
	}
	if ofSandbox >= maxWatchers || ofTenant >= tenantWatchers || len(w.all) >= allWatchers {
		return "", nil, nil, fault.Limit("watchers", time.Time{}, "there are at most %d watchers of a sandbox, %d of a tenant, and %d of the server", maxWatchers, tenantWatchers, allWatchers)
	}
	ctx, cancel := context.WithCancelCause(w.ctx)
	added = &watcher{claim: of, cancel: cancel, ended: make(chan struct{}), idle: time.AfterFunc(watcherIdle, func() { cancel(errForgotten) })}
	id = rand.Text()
	w.all[id] = added
	w.wg.Add(1)
	return id, added, ctx, nil
}

// end ends the watchers of a sandbox, and waits until none of them uses it.
func (w *watchers) end(of tenant.ID, id runtime.ID) {
	var ending []*watcher
	w.mu.Lock()
	for _, one := range w.all {
		if one.claim.Tenant == of && one.claim.Sandbox == id {
			one.cancel(nil)
			ending = append(ending, one)
		}
	}
	w.mu.Unlock()
	for _, one := range ending {
		<-one.ended
	}
}

func (w *watchers) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, id)
}

// find finds a watcher of a sandbox.
func (w *watchers) find(id string, of claim) (*watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.all[id]; found != nil && found.claim.Sandbox == of.Sandbox && found.claim.Tenant == of.Tenant {
		return found, nil
	}
	return nil, fault.New(fault.NotFound, "watcher %.80q not found", id)
}

func (d *Handlers) createWatcher(ctx context.Context, c *httpapi.Call, in *PathRequest) (*WatcherID, error) {
	claim, err := d.claimOf(c.R)
	if err != nil {
		return nil, err
	}
	if err := c.Draining(); err != nil {
		return nil, err
	}
	id, w, life, err := d.watchers.add(claim)
	if err != nil {
		return nil, err
	}
	began, over := make(chan struct{}), make(chan error, 1)
	life, unwatch := c.Authorized(life)
	go func() {
		defer d.watchers.wg.Done()
		defer unwatch()
		defer d.watchers.remove(id)
		defer w.idle.Stop()
		defer w.cancel(nil)
		err := d.onPath(life, c, in.Path, func(u *sandboxes.Use, _ string) error {
			return watch(life, u, in, func() error { close(began); return nil }, w.tell)
		})
		over <- err
		close(w.ended)
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
		w.idle.Reset(watcherOver)
		select {
		case <-began: // its last events can be asked for
			<-life.Done()
		default:
		}
	}()
	select {
	case <-began:
		return &WatcherID{id}, nil
	case err := <-over:
		return nil, err
	case <-ctx.Done():
		w.cancel(ctx.Err())
		return nil, errors.Join(<-over, ctx.Err())
	}
}

// tell keeps an event until it is asked for.
func (w *watcher) tell(e FileEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += e.size()
	if len(w.events) >= watcherEvents || w.bytes > watcherBytes {
		return fault.New(fault.Exhausted, "more changes waited to be asked for than are kept, %d or %d bytes of them: watch anew", watcherEvents, watcherBytes)
	}
	w.events = append(w.events, e)
	return nil
}

func (d *Handlers) onWatcher(c *httpapi.Call, id string) (*watcher, error) {
	claim, err := d.claimOf(c.R)
	if err != nil {
		return nil, err
	}
	return d.watchers.find(id, claim)
}

func (d *Handlers) watcherEvents(_ context.Context, c *httpapi.Call, in *WatcherID) (*WatcherEvents, error) {
	w, err := d.onWatcher(c, in.ID)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.idle.Reset(watcherIdle)
	}
	if len(w.events) == 0 && w.err != nil && !errors.Is(w.err, io.EOF) {
		return nil, w.err
	}
	out := &WatcherEvents{Events: append([]FileEvent{}, w.events...)}
	w.events, w.bytes = nil, 0
	return out, nil
}

func (d *Handlers) removeWatcher(_ context.Context, c *httpapi.Call, in *WatcherID) (*Empty, error) {
	w, err := d.onWatcher(c, in.ID)
	if err != nil {
		return nil, err
	}
	w.cancel(nil)
	d.watchers.remove(in.ID)
	return &Empty{}, nil
}
