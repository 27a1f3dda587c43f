package usage

import (
	"context"
	"sync"
)

// turns let one caller of a name at a time go on. The zero turns are ready for use.
type turns struct {
	mu  sync.Mutex
	one map[string]*turn // guarded by mu; those taken or waited for
}

type turn struct {
	taken chan struct{} // of capacity 1: full while somebody has the turn
	users int           // guarded by turns.mu
}

// wait returns when it is the caller's turn, which it has until it calls done, or with ctx's
// error.
func (t *turns) wait(ctx context.Context, name string) (done func(), err error) {
	t.mu.Lock()
	if t.one == nil {
		t.one = map[string]*turn{}
	}
	o := t.one[name]
	if o == nil {
		o = &turn{taken: make(chan struct{}, 1)}
		t.one[name] = o
	}
	o.users++
	t.mu.Unlock()
	select {
	case o.taken <- struct{}{}:
		return func() { <-o.taken; t.leave(name, o) }, nil
	case <-ctx.Done():
		t.leave(name, o)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) leave(name string, o *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.users--; o.users == 0 {
		delete(t.one, name)
	}
}
