// Package remote declares the calls between gateways and executors that run as separate processes. A
// Call has a name, an argument and a result. A Caller sends calls, and Handlers answer them.
package remote

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Caller sends calls to processes of the other role.
type Caller interface {
	// Call sends a call and decodes its answer into out. It returns an Unavailable fault if no
	// process answers, and else the error of the Handler.
	Call(ctx context.Context, name string, in, out any) error
}

// Handler answers a call. from is the id of the server that sent it. decode decodes the argument.
type Handler func(ctx context.Context, from string, decode func(in any) error) (out any, err error)

// Handlers are Handlers by the names of their calls.
type Handlers map[string]Handler

// Call is the name of a call with its types.
type Call[In, Out any] string

// Do sends the call.
func (c Call[In, Out]) Do(ctx context.Context, by Caller, in In) (out Out, err error) {
	err = by.Call(ctx, string(c), in, &out)
	return out, err
}

// Handle adds f to handlers as the Handler of the call.
func (c Call[In, Out]) Handle(handlers Handlers, f func(ctx context.Context, from string, in In) (Out, error)) {
	handlers[string(c)] = func(ctx context.Context, from string, decode func(any) error) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the call "+string(c)+" cannot be read; run the same version on all servers")
		}
		return f(ctx, from, in)
	}
}

// None is the argument or result of a call without one.
type None struct{}
