// Package contexts runs pieces of code in the code contexts of named sandboxes.
//
// The interpreter runs a script of ours (guest/hook/context.*), which takes code from
// descriptor 3 and writes to descriptor 4 what came of it. Script and program are one
// process: what a context reports about itself is under its program's control, and can
// mislead only the caller that runs that program. So every message is bounded and checked, and
// the first one that no script of ours writes ends the context.
//
// Atoll sends each piece as a line "ID LENGTH" followed by LENGTH bytes of code. A third word,
// the run's key or ?, marks a run with a key, which only Python supports: the script remembers
// the last key, never starts a key twice, and answers began, known or unknown. The script sends
// JSON lines of up to 10 MiB: ready, display, result, error, and finally done, then a blank. The
// daemon forwards earlier standard output and standard error before each line.
//
// Atoll interrupts Node.js with SIGINT, then SIGURG. A thread that the first await starts (about
// 40 ms and 10 MB) receives SIGURG and asks V8 to stop the code 200 ms later.
//
// Contexts are found by the ids of their processes, which the sandbox's daemon keeps:
// nothing of them is lost when the server restarts.
package contexts

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Guest is what contexts need of a sandbox.
type Guest interface {
	Start(ctx context.Context, spec process.Spec) (process.Info, error)
	Process(ctx context.Context, id process.ID) (process.Info, error)
	Processes(ctx context.Context) ([]process.Info, error)
	Follow(ctx context.Context, id process.ID, after process.Seq) (process.Output, error)
	Converse(ctx context.Context, id process.ID, data []byte, after process.Seq) (process.Output, error)
	Signal(ctx context.Context, id process.ID, sig syscall.Signal, group bool) error
	Kill(ctx context.Context, id process.ID) error
	Discard(ctx context.Context, id process.ID) error
}

// Use is a sandbox that is being used.
type Use struct {
	Guest    Guest
	Sandbox  runtime.ID
	Redactor *redact.Set // what must not be seen
}

// Contexts runs code in the contexts of sandboxes. It is safe for concurrent use.
type Contexts struct {
	obey time.Duration

	mu   sync.Mutex
	all  map[key]*state        // guarded by mu; of contexts that were used
	busy map[runtime.ID]*usage // guarded by mu
}

// usage is what is under way with the contexts of a sandbox.
type usage struct {
	calls    map[codecontext.ID]int      // that start a context, or run code in it
	lists    int                         // that are made to count what there is
	started  map[codecontext.ID]struct{} // while one of them was made, which may not have it
	starting map[codecontext.ID]int      // calls whose interpreter is not ready yet
}

type key struct {
	sandbox runtime.ID
	id      codecontext.ID
}

// state is what is known of a context besides its process.
type state struct {
	busy   bool          // guarded by Contexts.mu
	asked  chan struct{} // guarded by Contexts.mu; receives a value for each interrupt
	cursor process.Seq   // the rest belongs to the run
	run    int64         // the last one's number
}

// New returns Contexts.
func New() *Contexts {
	return &Contexts{obey: obeyTime, all: map[key]*state{}, busy: map[runtime.ID]*usage{}}
}

// enter notes that something is under way with a context, of no more contexts than
// a sandbox can have, whatever its guest says that there are. c.mu is held.
func (c *Contexts) enter(k key) error {
	of := c.busy[k.sandbox]
	if of == nil {
		of = &usage{calls: map[codecontext.ID]int{}, started: map[codecontext.ID]struct{}{}, starting: map[codecontext.ID]int{}}
		c.busy[k.sandbox] = of
	}
	if of.calls[k.id] == 0 && len(of.calls) >= codecontext.MaxContexts {
		return codecontext.ErrTooMany
	}
	of.calls[k.id]++
	return nil
}

// leave undoes enter. c.mu is held.
func (c *Contexts) leave(k key) {
	of := c.busy[k.sandbox]
	if of.calls[k.id]--; of.calls[k.id] <= 0 {
		delete(of.calls, k.id)
	}
	if len(of.calls) == 0 {
		delete(c.busy, k.sandbox)
	}
}

// maxStates bounds what is remembered; contexts that are forgotten are looked up.
const maxStates = 10_000

// begin locks a context. known is false if nothing is remembered of it.
func (c *Contexts) begin(k key) (s *state, known bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s = c.all[k]
	if s != nil && s.busy {
		return nil, true, codecontext.Busy(k.id)
	}
	if err := c.enter(k); err != nil {
		return nil, false, err
	}
	if known = s != nil; !known {
		if len(c.all) >= maxStates {
			for k, s := range c.all {
				if !s.busy {
					delete(c.all, k)
					break
				}
			}
		}
		s = &state{run: time.Now().UnixMicro()} // above those of an earlier server
		c.all[k] = s
	}
	s.busy, s.asked = true, make(chan struct{}, 1)
	return s, known, nil
}

// finish unlocks it. What is remembered goes unless the context is as it was
// left.
func (c *Contexts) finish(k key, s *state, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.busy = false
	c.leave(k)
	if !keep && c.all[k] == s {
		delete(c.all, k)
	}
}

// forget makes a context unknown; a run that is under way ends with its process.
func (c *Contexts) forget(k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, k)
}

func (c *Contexts) running(k key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.all[k]
	return s != nil && s.busy
}

// Create starts a context. dir is its working directory, "" for the home.
func (c *Contexts) Create(ctx context.Context, u *Use, of execution.Language, dir string) (*codecontext.Context, error) {
	var b [4]byte
	rand.Read(b[:])
	id, err := codecontext.ParseID(string(of) + "-" + hex.EncodeToString(b[:]))
	if err != nil {
		return nil, codecontext.ErrLanguage
	}
	return c.start(ctx, u, id, dir)
}

// command is the interpreter of a context, as the PATH of the image has it.
func command(l *language.Language) []string {
	argv := append([]string{l.Programs[0]}, l.Context.Flags...)
	return append(argv, runtime.GuestDir+"/"+l.Context.Hook)
}

// start starts a context, if there is room for it.
func (c *Contexts) start(ctx context.Context, u *Use, id codecontext.ID, dir string) (_ *codecontext.Context, err error) {
	k := key{u.Sandbox, id}
	c.mu.Lock()
	err = c.enter(k)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, codecontext.NotResponding(id))
	defer cancel()
	if err := c.fit(ctx, u, k); err != nil {
		return nil, err
	}
	c.mu.Lock()
	of := c.busy[k.sandbox]
	of.starting[id]++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if of.starting[id]--; of.starting[id] == 0 {
			delete(of.starting, id)
		}
		if err == nil && of.lists > 0 {
			of.started[id] = struct{}{}
		}
		c.leave(k)
	}()
	p, err := u.Guest.Start(ctx, process.Spec{
		ID: id.Process(), Argv: command(language.Get(id.Language())), Dir: dir, Control: true, Lossless: true,
	})
	if err != nil {
		return nil, err
	}
	if err := ready(ctx, u, id); err != nil {
		return nil, err
	}
	return c.describe(u, p), nil
}

// fit counts the contexts there are and those under way, and refuses one that has
// entered when the sandbox has no room for it. Then it leaves, which makes room for
// the next.
func (c *Contexts) fit(ctx context.Context, u *Use, k key) (err error) {
	c.mu.Lock()
	of := c.busy[k.sandbox]
	of.lists++
	c.mu.Unlock()
	all, err := c.List(ctx, u)
	c.mu.Lock()
	defer c.mu.Unlock()
	there := maps.Clone(of.started)
	for _, one := range all {
		there[one.ID] = struct{}{}
	}
	for id := range of.calls {
		there[id] = struct{}{}
	}
	if of.lists--; of.lists == 0 {
		clear(of.started)
	}
	if err == nil && len(there) > codecontext.MaxContexts {
		err = codecontext.ErrTooMany
	}
	if err != nil {
		c.leave(k)
	}
	return err
}

// startTime bounds finding out about a context, and starting it.
const startTime = time.Minute

// ready waits until an interpreter that was started takes code: before, it knows
// nothing of interrupts. One that does not come up is ended.
func ready(ctx context.Context, u *Use, id codecontext.ID) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, u.Guest.Discard(context.WithoutCancel(ctx), id.Process()))
		}
	}()
	out, err := u.Guest.Follow(ctx, id.Process(), 0)
	if err != nil {
		return err
	}
	defer out.Close()
	var d decoder
	var said []byte // on stderr
	for up := false; !up; {
		chunk, err := out.Next()
		switch {
		case errors.Is(err, io.EOF):
			return fault.New(fault.Invalid, "the image has no %s that can be a code context: it ended with status %d: %.300s", id.Language(), out.Exit().Code, redactText(u.Redactor, string(said)))
		case err != nil:
			return err
		case chunk.Stream == process.Stderr && len(said) < 300:
			said = append(said, chunk.Data...)
		case chunk.Stream == process.Control:
			if err := d.write(chunk.Data, func(m *message) error { up = true; return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Contexts) describe(u *Use, p process.Info) *codecontext.Context {
	id := codecontext.ID(strings.TrimPrefix(string(p.ID), codecontext.ProcessPrefix))
	return &codecontext.Context{ID: id, Dir: p.Dir, Started: p.Started, Running: c.running(key{u.Sandbox, id}), Exit: p.Exit}
}

// List lists a sandbox's contexts, oldest first.
func (c *Contexts) List(ctx context.Context, u *Use) ([]*codecontext.Context, error) {
	all, err := u.Guest.Processes(ctx)
	if err != nil {
		return nil, err
	}
	var out []*codecontext.Context
	for _, p := range all {
		if name, ok := strings.CutPrefix(string(p.ID), codecontext.ProcessPrefix); ok {
			if _, err := codecontext.ParseID(name); err == nil {
				out = append(out, c.describe(u, p))
			}
		}
	}
	return out, nil
}

// Get finds a context.
func (c *Contexts) Get(ctx context.Context, u *Use, id codecontext.ID) (*codecontext.Context, error) {
	p, err := u.Guest.Process(ctx, id.Process())
	if err != nil {
		return nil, nameUnknown(id, err)
	}
	return c.describe(u, p), nil
}

// nameUnknown says which context there is not.
func nameUnknown(id codecontext.ID, err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return codecontext.Unknown(string(id))
	}
	return err
}

// Interrupt interrupts what a context runs, and what that has started in its
// foreground. It does not wait for it to end; a context that is idle, or not ready yet,
// stays as it is.
func (c *Contexts) Interrupt(ctx context.Context, u *Use, id codecontext.ID) error {
	c.mu.Lock()
	of := c.busy[u.Sandbox]
	starts := of != nil && of.starting[id] > 0
	var asked chan struct{}
	if s := c.all[key{u.Sandbox, id}]; s != nil && s.busy {
		asked = s.asked
	}
	c.mu.Unlock()
	if starts { // it runs no code, and SIGINT would end it
		return nil
	}
	err := interrupt(ctx, u.Guest, id)
	if err == nil {
		select {
		case asked <- struct{}{}:
		default: // no run, or the run is already repeating an interrupt
		}
	}
	return nameUnknown(id, err)
}

// interrupt does what Ctrl-C does. An interpreter that hears of it by another thread, such
// as Node.js, gets a signal for that thread, too.
func interrupt(ctx context.Context, g Guest, id codecontext.ID) error {
	err := g.Signal(ctx, id.Process(), syscall.SIGINT, true)
	if err == nil && language.Get(id.Language()).Context.Thread {
		err = g.Signal(ctx, id.Process(), syscall.SIGURG, false)
	}
	return err
}

// Delete ends a context, whatever it does.
func (c *Contexts) Delete(ctx context.Context, u *Use, id codecontext.ID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*c.obey, codecontext.NotResponding(id))
	defer cancel()
	c.forget(key{u.Sandbox, id})
	return nameUnknown(id, u.Guest.Discard(ctx, id.Process()))
}

// Restart ends a context and starts it anew, with nothing defined.
func (c *Contexts) Restart(ctx context.Context, u *Use, id codecontext.ID) (*codecontext.Context, error) {
	p, err := u.Guest.Process(ctx, id.Process())
	if err != nil {
		return nil, nameUnknown(id, err)
	}
	if err := c.Delete(ctx, u, id); err != nil {
		return nil, err
	}
	return c.start(ctx, u, id, p.Dir)
}
