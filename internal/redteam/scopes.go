package redteam

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// scopeCases use keys for what they are not for.
func scopeCases() []Case {
	all := []Case{
		{"scopes/no-key", Critical, "calls every operation without a key", "each that takes a key answers 401", withoutKey},
		{"scopes/bad-keys", Critical, "uses keys that are unknown, malformed, revoked, expired, and those of a disabled tenant", "all have the same answer, 401", badKeys},
		{"scopes/admin-key-for-tenant", Critical, "makes a key that administers for an ordinary tenant", "it is refused", ordinaryAdmin},
		{"scopes/key-in-url", Medium, "gives its key in the query, a cookie and as basic authentication's user", "none of them is taken for a key", keyElsewhere},
		{"scopes/doors", Critical, "calls the protocols of other vendors without a key, and with one that may not use sandboxes", "each answers 401, or 403", doorsClosed},
		{"scopes/bound-token", Critical, "calls every operation with a token that is bound to one sandbox, and another sandbox with it", "each answers 401 or 403, and the token's own sandbox answers", boundToken},
		{"scopes/token-of-token", Critical, "has a token make a token, end one and list them, and makes one with scopes that its key lacks", "each answers 403", tokenOfToken},
		{"scopes/token-origin", High, "uses a token that is for pages of one origin from another, and without any", "each answers 403", tokenOrigin},
		{"scopes/revoked-at-work", High, "revokes a key while a stream of its runs", "the key is refused at once, and its stream ends", revokedAtWork},
	}
	for _, s := range slices.Sorted(maps.Keys(families)) {
		all = append(all, Case{"scopes/" + s, Critical, "calls every operation that the scope " + s + " does not cover, with a key that has no other", "each answers 403", lacking(s)})
	}
	return all
}

// families are the scopes that a key of a tenant may have, and the operations that each
// covers, by the beginning of method and path; $ is the end.
var families = map[string][]string{
	"execute": {
		"POST /v1/sandbox/execute", "GET /mcp", "POST /mcp", "DELETE /mcp", "POST /v1/executions/", "DELETE /v1/executions/", "PATCH /v1/threads/", "PUT /v1/threads/", "DELETE /v1/threads/",
		"POST /v1/threads/{thread_id}/signed_urls", "POST /v1/files/upload_url", "POST /v1/files$", "DELETE /v1/files/",
		"POST /v1/responses", "DELETE /v1/responses/", "POST /v1/agent", "DELETE /v1/agent/",
		"POST /v1/skills", "DELETE /v1/skills/", "PATCH /v1/agents/", "DELETE /v1/agents/", "POST /default/v1/agents", "PATCH /default/v1/agents/", "DELETE /default/v1/agents/",
		"POST /v1/sessions$", "POST /v1/approvals/", "POST /v1/sessions/{session_id}/", "PATCH /v1/sessions/", "DELETE /v1/sessions/", "POST /default/v1/sessions", "PATCH /default/v1/sessions/", "DELETE /default/v1/sessions/",
	},
	"read": {
		"GET /v1/executions", "GET /v1/usage", "GET /v1/activity", "GET /v1/approvals", "GET /v1/threads", "POST /v1/threads/{thread_id}/signed_urls", "POST /v1/files/list", "POST /v1/files/download_url", "GET /v1/files",
		"GET /v1/responses/", "GET /v1/agent/", "GET /v1/skills", "GET /v1/vaults", "GET /v1/agents", "GET /default/v1/agents", "GET /v1/sessions", "GET /default/v1/sessions",
	},
	"tools": {"GET /v1/tools", "POST /v1/tools", "DELETE /v1/tools", "POST /v1/sessions/{session}/", "GET /mcp", "POST /mcp", "DELETE /mcp", "POST /v1/search", "POST /search", "POST /v1/fetch"},
	"sandboxes": {
		"GET /v1/sandboxes", "POST /v1/sandboxes", "PUT /v1/sandboxes/", "DELETE /v1/sandboxes/", "GET /v1/snapshots", "DELETE /v1/snapshots/",
		"GET /v1/containers", "POST /v1/containers", "DELETE /v1/containers/",
	},
	"environments": {
		"GET /v1/environments", "POST /v1/environments", "PATCH /v1/environments/", "DELETE /v1/environments/",
		"GET /default/v1/environments", "POST /default/v1/environments", "PATCH /default/v1/environments/", "DELETE /default/v1/environments/",
		"GET /v1/model-keys", "PUT /v1/model-keys/", "DELETE /v1/model-keys/",
		"POST /v1/vaults", "PATCH /v1/vaults/", "DELETE /v1/vaults/",
	},
}

// anyKey are operations that every key may call: they show nothing of a tenant, or are about
// the key itself.
var anyKey = []string{"GET /v1/models", "GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/"}

// attackOperation calls an operation with things that do not exist.
func attackOperation(ctx context.Context, c caller, op operation) (*answer, error) {
	return c.do(ctx, op.Method, query(op.fill(nil)), op.Body, "Mcp-Session-Id", "redteam-none")
}

// every calls a function for each operation that takes a key, a few at a time.
func (a *arena) every(ctx context.Context, want func(operation) bool, try func(operation) error) error {
	all, err := a.theSpec(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	tried := 0
	slots := make(chan struct{}, maxParallel)
	for _, op := range all {
		if !op.Keyed || !want(op) {
			continue
		}
		tried++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := try(op); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if tried < 20 && len(errs) == 0 {
		return fmt.Errorf("the server's document has %d operations to try", tried)
	}
	for _, err := range errs { // a finding comes before what could not be tried
		if f, ok := errors.AsType[*finding](err); ok {
			return f
		}
	}
	return errors.Join(errs...)
}

func withoutKey(ctx context.Context, a *arena) error {
	return a.every(ctx, func(operation) bool { return true }, func(op operation) error {
		got, err := attackOperation(ctx, a.stranger, op)
		if err != nil {
			return err
		}
		if got.Status != http.StatusUnauthorized {
			return found("%s %s without a key: %s", op.Method, op.Path, got)
		}
		return nil
	})
}

func lacking(scope string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		c, err := a.key(ctx, attackerTenant, envPlain, scope)
		if err != nil {
			return err
		}
		foreign := func(op operation) bool {
			name := op.Method + " " + op.Path
			return !slices.ContainsFunc(anyKey, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) && !slices.ContainsFunc(families[scope], func(prefix string) bool { return strings.HasPrefix(name+"$", prefix) })
		}
		return a.every(ctx, foreign, func(op operation) error {
			got, err := attackOperation(ctx, c, op)
			if err != nil {
				return err
			}
			if got.Status != http.StatusForbidden {
				return found("%s %s with the scope %s alone: %s", op.Method, op.Path, scope, got)
			}
			return nil
		})
	}
}

func badKeys(ctx context.Context, a *arena) error {
	revoked, id, err := a.keyAndID(ctx, attackerTenant, envPlain, "read")
	if err != nil {
		return err
	}
	if err := a.admin.must(ctx, http.MethodDelete, "/v1/admin/tenants/"+attackerTenant+"/keys/"+id, nil, nil); err != nil {
		return err
	}
	var short keyRecord
	body := map[string]any{"name": "redteam-" + a.run + "-short", "environment": envPlain, "scopes": []string{"read"}, "expires_in": 1}
	if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/tenants/"+attackerTenant+"/keys", body, &short); err != nil {
		return err
	}
	select {
	case <-time.After(1200 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	unknown, err := a.as("sk-atoll-"+token(20)).do(ctx, http.MethodGet, "/v1/executions", nil)
	if err != nil {
		return err
	}
	for name, key := range map[string]string{
		"unknown": "sk-atoll-" + token(20), "revoked": revoked.key, "expired": short.Key, "cut": a.plain.key[:len(a.plain.key)-1],
		"longer": a.plain.key + "0", "in capitals": strings.ToUpper(a.plain.key), "with SQL": "' OR '1'='1", "with NUL": "sk-atoll-\x00", "an id": a.ids[attackerTenant],
	} {
		got, err := a.as(strings.ReplaceAll(key, "\x00", "%00")).do(ctx, http.MethodGet, "/v1/executions", nil)
		if err != nil {
			return err
		}
		if got.Status != http.StatusUnauthorized || string(got.Body) != string(unknown.Body) {
			return found("a key that is %s: %s, one that is unknown: %s", name, got, unknown)
		}
	}
	return nil
}

func ordinaryAdmin(ctx context.Context, a *arena) error {
	for _, body := range []map[string]any{
		{"name": "redteam-" + a.run + "-admin", "scopes": []string{"admin"}},
		{"name": "redteam-" + a.run + "-admin", "environment": envPlain, "scopes": []string{"read", "admin"}},
	} {
		got, err := a.admin.do(ctx, http.MethodPost, "/v1/admin/tenants/"+attackerTenant+"/keys", body)
		if err != nil {
			return err
		}
		if got.Status < 400 {
			return found("%v made a key: %s", body, clipKey(got))
		}
	}
	return nil
}

// clipKey keeps keys out of evidence.
func clipKey(a *answer) string { return fmt.Sprintf("status %d", a.Status) }

func keyElsewhere(ctx context.Context, a *arena) error {
	key := a.plain.key
	for what, try := range map[string]struct {
		query   string
		headers []string
	}{
		"the query":            {"?api_key=" + key + "&access_token=" + key + "&key=" + key, nil},
		"a cookie":             {"", []string{"Cookie", "authorization=Bearer " + key + "; token=" + key}},
		"basic authentication": {"", []string{"Authorization", "Basic " + key}},
		"another header":       {"", []string{"X-Forwarded-Authorization", "Bearer " + key}},
	} {
		got, err := a.stranger.do(ctx, http.MethodGet, "/v1/executions"+try.query, nil, try.headers...)
		if err != nil {
			return err
		}
		if got.Status != http.StatusUnauthorized {
			return found("the server answered a key in %s with status %d", what, got.Status)
		}
	}
	return nil
}

// revokedTime bounds how long a stream may go on after its key was revoked: 10 s, and
// some seconds for a busy machine.
const revokedTime = 20 * time.Second

func revokedAtWork(ctx context.Context, a *arena) error {
	c, id, err := a.keyAndID(ctx, attackerTenant, envPlain, "sandboxes")
	if err != nil {
		return err
	}
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	s.by = c
	var p struct {
		ID string `json:"process_id"`
	}
	if err := c.must(ctx, http.MethodPost, s.path("/processes"), map[string]any{"argv": []string{"sleep", "40"}, "timeout_ms": 40_000}, &p); err != nil {
		return err
	}
	follow, cancel := context.WithTimeoutCause(ctx, revokedTime, errStillOpen)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.once(follow, http.MethodGet, s.path("/processes/"+p.ID+"/output", "follow", "true"), nil, "Accept", "application/x-ndjson") // how it ends is the cause of follow
	}()
	err = a.admin.must(ctx, http.MethodDelete, "/v1/admin/tenants/"+attackerTenant+"/keys/"+id, nil, nil)
	if err == nil {
		var got *answer
		if got, err = c.do(ctx, http.MethodGet, s.path(""), nil); err == nil && got.Status != http.StatusUnauthorized {
			err = found("the server answered the revoked key with %s", got)
		}
	}
	if err != nil {
		cancel()
		<-ended
		return err
	}
	<-ended
	if errors.Is(context.Cause(follow), errStillOpen) {
		return found("a stream was open %v after its key was revoked", revokedTime)
	}
	s.by = a.plain
	return gone(ctx, a.plain, s.path("/processes/"+p.ID))
}

var errStillOpen = errors.New("still open")
