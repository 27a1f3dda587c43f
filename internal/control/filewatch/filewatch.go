// Package filewatch follows changes of files in sandboxes, for clients that read a stream and for clients
// that ask for changes.
package filewatch

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
)

// Event is a change below a watched folder.
type Event struct {
	Name   string // from the folder
	Change file.Change
	Info   *file.Info // nil for a file that is gone, or if it was not asked for
}

// size is about how many bytes an event takes in memory.
func (e *Event) size() int {
	n := len(e.Name) + 64
	if e.Info != nil {
		n += len(e.Info.Path) + 256 + len(e.Info.Target)
	}
	return n
}

// Folder says what is watched.
type Folder struct {
	Path      string
	Recursive bool
	Entries   bool // each event describes its file
}

// unfinished is the name that a file has while the sandbox's guest writes it.
var unfinished = regexp.MustCompile(`^\.atoll-[0-9a-f]{12}$`)

// Watch calls tell for every change of a folder until it fails, or ctx ends. It calls ready before the first.
func Watch(ctx context.Context, u *sandboxes.Use, of *Folder, ready func() error, tell func(Event) error) error {
	there, err := u.Guest().Stat(ctx, of.Path)
	if err == nil && there.Kind == file.Link {
		there, err = u.Guest().Stat(ctx, of.Path+"/.")
	}
	if err != nil {
		return err
	}
	if there.Kind != file.Folder {
		return fault.New(fault.Invalid, "path is not a directory: %.200q", of.Path)
	}
	events, err := u.Guest().Watch(ctx, of.Path, of.Recursive)
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
			return fault.New(fault.Exhausted, "Atoll lost changes, because too many happened at once: read the directory, and start another watch")
		}
		if unfinished.MatchString(path.Base(e.Path)) {
			continue
		}
		event := Event{Name: below(path.Clean(there.Path), e.Path), Change: e.Change}
		if of.Entries && e.Change != file.Removed {
			if info, err := u.Guest().Stat(ctx, e.Path); err == nil {
				event.Info = &info
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

// Clients that cannot keep a stream open create a watcher and poll it for events. A watcher is in the
// memory of this process and keeps its sandbox awake. It ends after watcherIdle without a poll, when
// its key is revoked, and when its sandbox is paused or killed. A watcher whose sandbox has ended
// stays for watcherOver, to tell the client why.
const (
	watcherIdle    = 10 * time.Minute
	watcherOver    = time.Minute
	watcherEvents  = 4096      // unread
	watcherBytes   = 512 << 10 // of them
	maxWatchers    = 32        // of a sandbox
	tenantWatchers = 256
	allWatchers    = 1024
)

// Owner is the sandbox of a watcher, and its tenant.
type Owner struct {
	Tenant  tenant.ID
	Sandbox runtime.ID
}

// Watchers hold the watchers of this process. Close ends them.
type Watchers struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu  sync.Mutex
	all map[string]*watcher // guarded by mu; by id
}

type watcher struct {
	owner  Owner
	cancel context.CancelCauseFunc
	idle   *time.Timer
	ended  chan struct{} // closed when it does not use its sandbox any more

	mu     sync.Mutex
	events []Event // guarded by mu
	bytes  int     // guarded by mu; of events
	err    error   // guarded by mu; why there are no more
}

var errForgotten = errors.New("no client polled the watcher")

// New returns Watchers without any.
func New() *Watchers {
	w := &Watchers{all: map[string]*watcher{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Close ends the watchers, and waits for that.
func (w *Watchers) Close() {
	w.cancel()
	w.wg.Wait()
}

// add makes room for a watcher of a sandbox.
func (w *Watchers) add(of Owner) (id string, added *watcher, ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return "", nil, nil, fault.New(fault.Unavailable, "the server is shutting down")
	}
	ofSandbox, ofTenant := 0, 0
	for _, other := range w.all {
		if other.owner.Sandbox == of.Sandbox {
			ofSandbox++
		}
		if other.owner.Tenant == of.Tenant {
			ofTenant++
		}
	}
	if ofSandbox >= maxWatchers || ofTenant >= tenantWatchers || len(w.all) >= allWatchers {
		return "", nil, nil, fault.Limit("watchers", time.Time{}, "there are at most %d watchers of a sandbox, %d of a tenant, and %d of the server", maxWatchers, tenantWatchers, allWatchers)
	}
	ctx, cancel := context.WithCancelCause(w.ctx)
	added = &watcher{owner: of, cancel: cancel, ended: make(chan struct{}), idle: time.AfterFunc(watcherIdle, func() { cancel(errForgotten) })}
	id = rand.Text()
	w.all[id] = added
	w.wg.Add(1)
	return id, added, ctx, nil
}

// End ends the watchers of a sandbox, and waits until none of them uses it.
func (w *Watchers) End(of Owner) {
	var ending []*watcher
	w.mu.Lock()
	for _, one := range w.all {
		if one.owner == of {
			one.cancel(nil)
			ending = append(ending, one)
		}
	}
	w.mu.Unlock()
	for _, one := range ending {
		<-one.ended
	}
}

func (w *Watchers) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, id)
}

// find finds a watcher of a sandbox.
func (w *Watchers) find(id string, of Owner) (*watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.all[id]; found != nil && found.owner == of {
		return found, nil
	}
	return nil, fault.New(fault.NotFound, "watcher %.80q not found", id)
}

// Start starts a watcher, and returns its id once it watches. It runs watch in the background; authorized
// ends that when the caller's key is revoked.
func (w *Watchers) Start(ctx context.Context, of Owner, authorized func(context.Context) (context.Context, func()), watch func(life context.Context, ready func() error, tell func(Event) error) error) (string, error) {
	id, one, life, err := w.add(of)
	if err != nil {
		return "", err
	}
	began, over := make(chan struct{}), make(chan error, 1)
	life, unwatch := authorized(life)
	go func() {
		defer w.wg.Done()
		defer unwatch()
		defer w.remove(id)
		defer one.idle.Stop()
		defer one.cancel(nil)
		err := watch(life, func() error { close(began); return nil }, one.tell)
		over <- err
		close(one.ended)
		one.mu.Lock()
		one.err = err
		one.mu.Unlock()
		one.idle.Reset(watcherOver)
		select {
		case <-began: // a client can still poll its last events
			<-life.Done()
		default:
		}
	}()
	select {
	case <-began:
		return id, nil
	case err := <-over:
		return "", err
	case <-ctx.Done():
		one.cancel(ctx.Err())
		return "", errors.Join(<-over, ctx.Err())
	}
}

// tell keeps an event until the next poll.
func (w *watcher) tell(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += e.size()
	if len(w.events) >= watcherEvents || w.bytes > watcherBytes {
		return fault.New(fault.Exhausted, "the watcher holds at most %d unread changes, or %d bytes: read the directory, and start another watcher", watcherEvents, watcherBytes)
	}
	w.events = append(w.events, e)
	return nil
}

// Events returns the events of a watcher since the last call.
func (w *Watchers) Events(id string, of Owner) ([]Event, error) {
	one, err := w.find(id, of)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.err == nil {
		one.idle.Reset(watcherIdle)
	}
	if len(one.events) == 0 && one.err != nil && !errors.Is(one.err, io.EOF) {
		return nil, one.err
	}
	out := one.events
	one.events, one.bytes = nil, 0
	return out, nil
}

// Remove ends a watcher.
func (w *Watchers) Remove(id string, of Owner) error {
	one, err := w.find(id, of)
	if err != nil {
		return err
	}
	one.cancel(nil)
	w.remove(id)
	return nil
}
