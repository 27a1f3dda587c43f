package redteam

import (
	"context"
	"net/http"
	"strings"
)

// newToken has a key make a token.
func newToken(ctx context.Context, a *arena, by caller, body map[string]any) (caller, error) {
	var made struct{ Token string }
	err := by.must(ctx, http.MethodPost, "/v1/tokens", body, &made)
	return a.as(made.Token), err
}

// refused wants an answer that refuses a caller for what it may not do.
func refused(what string, got *answer, err error) error {
	if err == nil && got.Status != http.StatusForbidden && got.Status != http.StatusUnauthorized {
		return found("%s: %s", what, got)
	}
	return err
}

func boundToken(ctx context.Context, a *arena) error {
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	t, err := newToken(ctx, a, s.by, map[string]any{"sandbox": s.ID})
	if err != nil {
		return err
	}
	if err := t.must(ctx, http.MethodGet, s.path(""), nil, nil); err != nil {
		return err
	}
	return a.every(ctx, func(op operation) bool { return !strings.HasPrefix(op.Path, "/v1/models") }, func(op operation) error {
		got, err := attackOperation(ctx, t, op)
		return refused(op.Method+" "+op.Path+" with a token of another sandbox", got, err)
	})
}

func tokenOfToken(ctx context.Context, a *arena) error {
	narrow, err := a.key(ctx, attackerTenant, envPlain, "read")
	if err != nil {
		return err
	}
	t, err := newToken(ctx, a, narrow, map[string]any{"scopes": []string{"read"}})
	if err != nil {
		return err
	}
	for _, try := range []struct {
		by           caller
		method, path string
		body         any
	}{
		{t, http.MethodPost, "/v1/tokens", map[string]any{"scopes": []string{"read"}}},
		{t, http.MethodGet, "/v1/tokens", nil},
		{t, http.MethodDelete, "/v1/tokens/tok_none_0", nil},
		{t, http.MethodGet, "/v1/admin/tenants", nil},
		{narrow, http.MethodPost, "/v1/tokens", map[string]any{"scopes": []string{"execute"}}},
		{narrow, http.MethodPost, "/v1/tokens", map[string]any{"operations": []string{"runProgram"}}},
	} {
		got, err := try.by.do(ctx, try.method, try.path, try.body)
		if err := refused(try.method+" "+try.path, got, err); err != nil {
			return err
		}
	}
	return nil
}

func tokenOrigin(ctx context.Context, a *arena) error {
	const page = "https://page.example"
	t, err := newToken(ctx, a, a.plain, map[string]any{"scopes": []string{"read"}, "origins": []string{page}})
	if err != nil {
		return err
	}
	for _, origin := range []string{"", "null", "https://evil.example", page + ".evil.example", page + ":8443", "http://page.example", page + "/", page + " https://evil.example"} {
		var header []string
		if origin != "" {
			header = []string{"Origin", origin}
		}
		got, err := t.do(ctx, http.MethodGet, "/v1/models", nil, header...)
		if err := refused("from "+origin, got, err); err != nil {
			return err
		}
	}
	got, err := t.do(ctx, http.MethodGet, "/v1/models", nil, "Origin", page)
	if err == nil && got.Status != http.StatusOK {
		return found("from the token's own page: %s", got)
	}
	return err
}
