package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/share"
)

// drop removes a home that its user lets go of, and forgets it.
func (c *Cache) drop(e *cached) error {
	err := c.discard(e)
	c.mu.Lock()
	delete(c.all, e.key)
	c.mu.Unlock()
	return err
}

// dropUnknown removes a home that the Cache does not know, unless it is in use by now.
func (c *Cache) dropUnknown(key string) error {
	c.mu.Lock()
	if c.all[key] != nil {
		c.mu.Unlock()
		return nil
	}
	e := &cached{key: key, leaving: make(chan struct{})}
	c.all[key] = e
	c.mu.Unlock()
	defer close(e.leaving)
	return c.drop(e)
}

// Ref names the thread of a home.
type Ref struct{ Tenant, ID string }

// Unused lists the threads whose homes no execution uses.
func (c *Cache) Unused() []Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	refs := make([]Ref, 0, c.idle.Len())
	for at := c.idle.Front(); at != nil; at = at.Next() {
		e := at.Value.(*cached)
		refs = append(refs, Ref{e.tenant, e.id})
	}
	return refs
}

// Forget removes the home of a thread that was deleted, unless an execution uses it: then
// a new thread has the name.
func (c *Cache) Forget(r Ref) error {
	c.mu.Lock()
	e := c.all[keyOf(r.Tenant, r.ID)]
	if e == nil || e.at == nil {
		c.mu.Unlock()
		return nil
	}
	c.idle.Remove(e.at)
	e.at, e.leaving = nil, make(chan struct{})
	c.count(e, -e.size)
	c.mu.Unlock()
	defer close(e.leaving)
	return c.drop(e)
}

// evict removes homes until the rest is within the bound.
func (c *Cache) evict() (failed error) {
	for e := c.surplus(); e != nil; e = c.surplus() {
		failed = errors.Join(failed, c.drop(e))
		close(e.leaving)
	}
	return failed
}

// surplus returns a home that has to go, which is not given out any more; nil if all
// may stay. It is the one that was not used for longest, of the tenant whose homes take most: a
// tenant with many homes does not drive those of others out.
func (c *Cache) surplus() *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.idle.Back()
	if last == nil || c.bytes <= c.cfg.Bytes {
		return nil
	}
	for most := share.Most(c.held); last.Prev() != nil && last.Value.(*cached).tenant != most; {
		last = last.Prev()
	}
	e := c.idle.Remove(last).(*cached)
	e.at, e.leaving = nil, make(chan struct{})
	c.count(e, -e.size)
	return e
}

// count counts bytes of an unused home. c.mu is held.
func (c *Cache) count(e *cached, bytes int64) {
	c.bytes += bytes
	if c.held[e.tenant] += bytes; c.held[e.tenant] <= 0 {
		delete(c.held, e.tenant)
	}
}

// discard moves what there is of a home into the trash.
func (c *Cache) discard(e *cached) error {
	c.mu.Lock()
	c.trash++
	to := c.path("trash", fmt.Sprintf("%d-%d", os.Getpid(), c.trash))
	c.mu.Unlock()
	err := os.Rename(c.path("homes", e.key), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c.wake()
	return err
}

func (c *Cache) wake() {
	select {
	case c.sweep <- struct{}{}:
	default:
	}
}

// sweeper empties the trash, which may take long, until the Cache is closed.
func (c *Cache) sweeper() {
	for {
		select {
		case <-c.sweep:
			c.emptyTrash()
		case <-c.done:
			c.emptyTrash()
			return
		}
	}
}

func (c *Cache) emptyTrash() {
	fd, err := openHome(c.path("trash"))
	if err == nil {
		err = clearFolder(fd)
		unix.Close(fd)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the command that had the folder has removed it
		c.cfg.Log.Warn("cannot remove old homes", "error", err)
	}
}

// Close empties the trash. Homes in use should have been let go of; what is not
// may be adopted by the next process. Unused ones stay for it.
func (c *Cache) Close() {
	c.closed.Do(func() { close(c.done) })
	c.swept.Wait()
}
