package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// alive is a named sandbox that this process has open.
type liveSandbox struct {
	engine  *Engine
	recipe  sandboxes.Recipe
	inst    runtime.Instance
	image   map[string]string // its variables
	release func() error      // of the image
	link    *link             // nil without a network
	trusted string            // file of the certificates that it trusts besides its image's; "" for none
	memory  memoryGuard

	lock   chan struct{}        // held, by having sent, while process 1 is called or client is set
	client *daemonclient.Client // nil until the first call
}

var _ sandboxes.Live = (*liveSandbox)(nil)

// speak has a conversation with process 1.
func (a *liveSandbox) withInit(ctx context.Context, say func(*initclient.Client) error) error {
	ctx, cancel := a.untilEnd(ctx)
	defer cancel()
	c, err := initclient.Dial(ctx, a.inst.Channel())
	if err != nil {
		return err
	}
	defer c.Close()
	return say(c)
}

// while is ctx while the sandbox lives.
func (a *liveSandbox) untilEnd(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with ctx
		select {
		case <-a.inst.Done():
			cancel(errors.New("the sandbox has ended"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// dialTime bounds the wait for the guest daemon to connect. The caller holds the lock
// meanwhile, and a program in the sandbox may keep the daemon from connecting.
const dialTime = 15 * time.Second

// Guest implements sandboxes.Live.
func (a *liveSandbox) Guest(ctx context.Context) (*daemonclient.Client, error) {
	select {
	case a.lock <- struct{}{}:
		defer func() { <-a.lock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a.client != nil {
		select {
		case <-a.client.Done():
			_ = a.client.Close()
			a.client = nil
		default:
			return a.client, nil
		}
	}
	ctx, cancel := a.untilEnd(ctx)
	defer cancel()
	ctx, stop := context.WithTimeoutCause(ctx, dialTime, fmt.Errorf("it has not come within %s", dialTime))
	defer stop()
	c, err := daemonclient.Dial(ctx, a.engine.host.socketFolder(a.recipe.ID), func(ctx context.Context) error {
		return a.withInit(ctx, func(c *initclient.Client) error {
			return c.StartDaemon(ctx, initclient.Limits{Processes: a.recipe.Limits.Processes, OpenFiles: a.recipe.Limits.OpenFiles})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reach the guest daemon of %s: %w", a.recipe.ID, err)
	}
	a.client = c
	return c, nil
}

// CloseGuest implements sandboxes.Live.
func (a *liveSandbox) CloseGuest() error {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.client == nil {
		return nil
	}
	err := a.client.Close()
	a.client = nil
	return err
}

// Environ implements sandboxes.Live.
func (a *liveSandbox) Environ(variables map[string]string) []string {
	return a.engine.environ(a.image, variables, a.recipe.Connected, a.trusted)
}

// Done implements sandboxes.Live.
func (a *liveSandbox) Done() <-chan struct{} { return a.inst.Done() }

// Usage implements sandboxes.Live.
func (a *liveSandbox) Usage(ctx context.Context) (runtime.Usage, error) {
	u, err := a.inst.Usage(ctx)
	u.Relieved = int(a.memory.ended.Load())
	return u, err
}

// FileDescriptors implements sandboxes.Live.
func (a *liveSandbox) FileDescriptors() (open, limit int, err error) {
	if served, ok := a.inst.(runtime.FileServed); ok {
		return served.FileDescriptors()
	}
	return 0, 0, nil
}

// RelieveMemory implements sandboxes.Live.
func (a *liveSandbox) RelieveMemory(ctx context.Context) error { return a.memory.relieve(ctx) }

// Folder implements sandboxes.Live.
func (a *liveSandbox) Folder() string { return a.engine.host.files(a.recipe.ID) }

// HostPath implements sandboxes.Live.
func (a *liveSandbox) HostPath(path string) (disk.Place, bool) {
	for _, f := range []struct{ inside, folder string }{
		{runtime.Home, filepath.Join(homeShare, initclient.HomeName)}, {"/tmp", tmpDir}, {"/var/tmp", varTmpDir},
	} {
		if below, ok := strings.CutPrefix(path+"/", f.inside+"/"); ok {
			return disk.Place{Root: filepath.Join(a.Folder(), f.folder), Path: below}, true
		}
	}
	return disk.Place{}, false
}

// Measure implements sandboxes.Live: what has a name, and what programs still have
// open of what has none any more. Neither is asked of the sandbox.
func (a *liveSandbox) Measure(ctx context.Context, most int64) (int64, error) {
	used, err := disk.Measure(ctx, a.Folder(), most)
	if err != nil {
		return used, err
	}
	holders, err := a.inst.Holders()
	if err != nil {
		return used, err
	}
	held, err := disk.UnlinkedSize(ctx, a.Folder(), holders)
	if used += held; err == nil && used > most {
		err = disk.ErrOverLimit
	}
	return used, err
}

// SetNetwork implements sandboxes.Live.
func (a *liveSandbox) SetNetwork(p runtime.NetworkPolicy, secrets []execution.BoundSecret) error {
	switch {
	case a.link == nil && p.Blocked():
		return nil
	case a.link == nil:
		return runtime.ErrNoNetwork
	}
	if len(secrets) > 0 {
		if err := a.engine.networks.admit(true); err != nil {
			return err
		}
	}
	if err := a.link.enforce(p); err != nil {
		return err
	}
	return a.link.bind(secrets)
}

// Traffic implements sandboxes.Live.
func (a *liveSandbox) Traffic() execution.Traffic {
	if a.link == nil {
		return execution.Traffic{}
	}
	return a.link.take()
}

// Refusals implements sandboxes.Live.
func (a *liveSandbox) Refusals(since time.Time) []execution.Refusal {
	if a.link == nil {
		return nil
	}
	return a.link.refusedSince(since)
}

// Detach implements sandboxes.Live.
func (a *liveSandbox) Detach() error {
	a.memory.stop()
	return errors.Join(a.CloseGuest(), a.inst.Detach(), a.release())
}

// Destroy implements sandboxes.Live.
func (a *liveSandbox) Destroy(ctx context.Context) error {
	a.memory.stop()
	return errors.Join(a.inst.Destroy(ctx), a.CloseGuest(), Sandboxes{a.engine}.Remove(ctx, a.recipe.ID), a.release())
}
