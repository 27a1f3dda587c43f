// Package e2b serves E2B's protocol, for clients that were written for it: its REST API,
// and the services that it has in each sandbox for processes, files and code.
//
// It is a door to the named sandboxes that package httpapi/sandbox serves, with the same
// keys, scopes, quotas and audit rows. Everything is below /e2b, so that no path of theirs
// is one of ours. What they have and Atoll has not is refused by its name.
package e2b

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sandbox"
)

// Prefix is what every path begins with.
const Prefix = "/e2b"

// Signer makes and checks sums of data, as seal.Box does.
type Signer interface {
	Sum(data []byte, purpose string) []byte
	Check(data []byte, purpose string, sum []byte) bool
}

// Keys finds who has a key, by the key or by its id; a tenant.Authority does.
type Keys interface {
	Authenticate(ctx context.Context, token string) (tenant.Principal, error)
	Holder(ctx context.Context, tenantID tenant.ID, keyID string) (tenant.Principal, error)
}

// Hosts are names of sandboxes that hosts are made of; preview.Previews has them.
type Hosts interface {
	Base() preview.Base
	Every(id runtime.ID) string
	OfEvery(label string) (id runtime.ID, port uint16, ok bool)
}

// Holders finds the keys that a sandbox can be used with; a sandbox.Store does.
type Holders interface {
	Holders(ctx context.Context, id runtime.ID) (tenant.ID, []string, error)
}

// Config is what a Door is made of. All of it is required.
type Config struct {
	Sandboxes *sandbox.Handlers
	Keys      Keys
	Signer    Signer
	Hosts     Hosts
	Holders   Holders
}

// Door serves the protocol. Close ends it.
type Door struct {
	sandboxes *sandbox.Handlers
	keys      Keys
	signer    Signer
	hosts     Hosts
	holders   Holders
	watchers  watchers
}

// New returns a Door.
func New(cfg Config) *Door {
	d := &Door{sandboxes: cfg.Sandboxes, keys: cfg.Keys, signer: cfg.Signer, hosts: cfg.Hosts, holders: cfg.Holders}
	d.watchers.open()
	return d
}

// Close ends the watches that clients left, and waits for that.
func (d *Door) Close() { d.watchers.close() }

// Operations is the table of what is served. None of it is in our OpenAPI document: the
// protocol is another vendor's.
func (d *Door) Operations() []httpapi.Operation {
	ops := slices.Concat(
		foreign(d.rest(), d.byKey, refuse),
		foreign(slices.Concat(d.files(), d.code()), d.byToken, refuse),
		foreign(d.contexts(), d.byAnyToken, refuse),
		foreign(slices.Concat(d.processes(), d.filesystem()), d.byToken, refuseCall),
		foreign(nothing(), d.byKey, refuse),
	)
	for i := range ops {
		ops[i].Path = Prefix + ops[i].Path
		ops[i].Scope, ops[i].Watched = tenant.ScopeSandboxes, true
	}
	return ops
}

func foreign(ops []httpapi.Operation, caller func(*http.Request) (tenant.Principal, error), refuse func(http.ResponseWriter, *http.Request, error)) []httpapi.Operation {
	f := &httpapi.Foreign{Caller: caller, Refuse: refuse}
	for i := range ops {
		ops[i].Foreign = f
		if ops[i].Answers == nil {
			ops[i].Answers = []httpapi.Answer{{Status: http.StatusOK}}
		}
	}
	return ops
}

// nothing refuses what the protocol has and the door has not.
func nothing() (ops []httpapi.Operation) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		ops = append(ops, httpapi.Operation{
			Method: method, Path: "/{rest...}", Body: &httpapi.Body{Media: httpapi.OctetStream, Optional: true}, Params: []httpapi.Param{{Name: "."}},
			Serve: httpapi.Writes(func(c *httpapi.Call) error {
				return unsupported("%s %s: templates, volumes, secrets and logs of E2B are not served here", c.R.Method, "/"+c.Path("rest"))
			}),
		})
	}
	return ops
}

// life is what goroutines of the door end with.
type life struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}
