// Package anthropic serves agents, sessions and environments in the shapes that the
// published anthropic packages read and write as client.beta.agents, .sessions, .vaults and .environments.
// It calls the same services as the native API. If a
// service's property has no counterpart in these shapes, changes keep it and answers name it in
// warnings. Requests with features that Atoll lacks are rejected with the field's name.
package anthropic

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
)

// Prefix is the first part of the paths of this API. Requests reach them by it, or by the
// header that the packages send.
const Prefix = "/anthropic"

const (
	betaHeader = "Anthropic-Beta"
	beta       = "managed-agents-"
	keyHeader  = "X-Api-Key"
)

// Keys finds who has a key.
type Keys interface {
	Authenticate(ctx context.Context, token string) (tenant.Principal, error)
}

// Handlers serve the Anthropic-compatible API.
type Handlers struct {
	Agents        *agents.Service
	Streams       *sessionstream.Streams
	Conversations *conversation.Service
	Vaults        *vaults.Service // nil without vaults
	Files         *upload.Service // nil without files
	Environments  *environments.Service
	Keys          Keys
}

// Path is the path by which a request of this API is served, "" for any other request.
func Path(r *http.Request) string {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return ""
	}
	if ofSkills(r) || ofFiles(r) {
		return Prefix + r.URL.Path
	}
	if asked(r, beta) {
		return Prefix + r.URL.Path
	}
	return ""
}

// asked reports whether a request names a beta of the packages.
func asked(r *http.Request, beta string) bool {
	for _, line := range r.Header.Values(betaHeader) {
		for name := range strings.SplitSeq(line, ",") {
			if strings.HasPrefix(strings.TrimSpace(name), beta) {
				return true
			}
		}
	}
	return false
}

// Operations returns the operations of this API. They include the native operations of skills and
// files, whose JSON the packages read. Atoll's OpenAPI document omits them, because another vendor
// defines them.
func (d *Handlers) Operations(native ...httpapi.Operation) []httpapi.Operation {
	for i := range native {
		native[i].ID = ""
	}
	ops := slices.Concat(d.agents(), d.sessions(), d.events(), d.threads(), d.environments(), d.vaults(), native, nothing())
	f := &httpapi.Compat{Caller: d.caller, Refuse: refuse}
	for i := range ops {
		op := &ops[i]
		op.Path, op.Compat = Prefix+op.Path, f
		op.Params = append(op.Params, httpapi.Param{Name: "beta", Hidden: true})
		if op.Answers == nil {
			op.Answers = []httpapi.Answer{{Status: http.StatusOK}}
		}
	}
	return ops
}

// caller finds who asks: the packages send a key as X-Api-Key, or a token as Authorization.
func (d *Handlers) caller(r *http.Request) (tenant.Principal, error) {
	keys, tokens := r.Header.Values(keyHeader), r.Header.Values("Authorization")
	switch {
	case len(keys)+len(tokens) > 1:
		return tenant.Principal{}, fault.New(fault.Unauthorized, "more than one API key: send X-Api-Key or Authorization once")
	case len(keys) == 1 && keys[0] != "":
		return d.Keys.Authenticate(r.Context(), keys[0])
	case len(tokens) == 1:
		if scheme, token, ok := strings.Cut(tokens[0], " "); ok && strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != "" {
			return d.Keys.Authenticate(r.Context(), strings.TrimSpace(token))
		}
	}
	return tenant.Principal{}, fault.New(fault.Unauthorized, "missing API key: give the client a key of this server, %s…, as api_key", tenant.KeyPrefix)
}

// nothing refuses what the packages can ask for and this server has not.
func nothing() (ops []httpapi.Operation) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		ops = append(ops, httpapi.Operation{
			Method: method, Path: "/{rest...}", Body: &httpapi.Body{Media: httpapi.OctetStream, Optional: true}, Params: []httpapi.Param{{Name: "."}}, Access: httpapi.AnyKey,
			Serve: httpapi.Writes(func(c *httpapi.Call) error {
				return httpapi.Invalid("%s %s is not served with the header anthropic-beta: %s…: only agents, their versions, sessions, their events and threads, environments, skills, vaults and files are", c.R.Method, "/"+c.Path("rest"), beta)
			}),
		})
	}
	return ops
}
