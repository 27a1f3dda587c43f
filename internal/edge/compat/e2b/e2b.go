// Package e2b serves E2B's protocol, for clients that were written for it: its REST API,
// and the services that it has in each sandbox for processes, files and code.
//
// It serves named sandboxes, with the same keys, scopes, quotas and audit rows as the native
// API. Everything is below /e2b, so that no path of theirs
// is one of ours. What they have and Atoll has not is refused by its name.
package e2b

import (
	"context"
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/control/filewatch"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Prefix is what every path begins with.
const Prefix = "/e2b"

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

// Config is what a Handlers is made of. All of it is required.
type Config struct {
	Sandboxes *sandboxes.Service
	Keys      Keys
	Signer    signed.Signer
	Hosts     Hosts
	Holders   signed.Holders
}

// Handlers serves the protocol. Close ends it.
type Handlers struct {
	sandboxes *sandboxes.Service
	keys      Keys
	tokens    *signed.Sandboxes
	hosts     Hosts
	watchers  *filewatch.Watchers
}

// New returns a Handlers.
func New(cfg Config) *Handlers {
	tokens := &signed.Sandboxes{Signer: cfg.Signer, Keys: cfg.Keys, Holders: cfg.Holders}
	return &Handlers{sandboxes: cfg.Sandboxes, keys: cfg.Keys, tokens: tokens, hosts: cfg.Hosts, watchers: filewatch.New()}
}

// Close ends the watches that clients left, and waits for that.
func (d *Handlers) Close() { d.watchers.Close() }

// Operations is the table of what is served. None of it is in our OpenAPI document: the
// protocol is another vendor's.
func (d *Handlers) Operations() []httpapi.Operation {
	ops := slices.Concat(
		compat(d.rest(), d.byKey, refuse),
		compat(slices.Concat(d.files(), d.code()), d.byToken, refuse),
		compat(d.contexts(), d.byAnyToken, refuse),
		compat(slices.Concat(d.processes(), d.filesystem()), d.byToken, refuseCall),
		compat(nothing(), d.byKey, refuse),
	)
	for i := range ops {
		ops[i].Path = Prefix + ops[i].Path
		ops[i].Scope, ops[i].Watched = tenant.ScopeSandboxes, true
	}
	return ops
}

func compat(ops []httpapi.Operation, caller func(*http.Request) (tenant.Principal, error), refuse func(http.ResponseWriter, *http.Request, error)) []httpapi.Operation {
	f := &httpapi.Compat{Caller: caller, Refuse: refuse}
	for i := range ops {
		ops[i].Compat = f
		if ops[i].Answers == nil {
			ops[i].Answers = []httpapi.Answer{{Status: http.StatusOK}}
		}
	}
	return ops
}

// nothing rejects operations of the protocol that Atoll does not support.
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
