package redteam

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// urlOf reads the URL of an answer.
func urlOf(body []byte) string {
	var v struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(body, &v) // what is no answer has none
	return v.URL
}

// sign makes a thread of its own with a file, and asks for a URL to read it.
func (a *arena) sign(ctx context.Context, by caller, thread string) (string, error) {
	if err := by.must(ctx, http.MethodPut, "/v1/threads/"+thread+"/files/own.txt", []byte("own"), nil); err != nil {
		return "", err
	}
	if err := by.must(ctx, http.MethodPut, "/v1/threads/"+thread+"/files/new.txt", []byte("new"), nil); err != nil {
		return "", err
	}
	var signed struct {
		URL string `json:"url"`
	}
	if err := by.must(ctx, http.MethodPost, "/v1/threads/"+thread+"/signed_urls", map[string]any{"path": "own.txt", "method": "GET", "expires_in": 300}, &signed); err != nil {
		return "", err
	}
	signed.URL = strings.TrimPrefix(signed.URL, a.base.String())
	got, err := a.stranger.do(ctx, http.MethodGet, signed.URL, nil)
	if err != nil {
		return "", err
	}
	if got.Status != http.StatusOK || string(got.Body) != "own" {
		return "", fmt.Errorf("a signed URL as it was given: %s", got)
	}
	return signed.URL, nil
}

func signedURLs(ctx context.Context, a *arena) error {
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	const thread = "redteam-signed"
	signed, err := a.sign(ctx, a.plain, thread)
	if err != nil {
		return err
	}
	path, signature, ok := strings.Cut(signed, "signature=")
	if !ok || len(signature) < 20 {
		return fmt.Errorf("a signed URL has no signature: %s", signed)
	}
	other := byte('A')
	if signature[len(signature)/2] == other {
		other = 'B'
	}
	flipped := signature[:len(signature)/2] + string(other) + signature[len(signature)/2+1:]
	for _, try := range []struct{ method, url string }{
		{http.MethodGet, strings.Replace(signed, "own.txt", "new.txt", 1)},
		{http.MethodGet, strings.Replace(signed, "own.txt", "..%2f"+preyThread+"%2fnotes.txt", 1)},
		{http.MethodGet, strings.Replace(signed, thread+"/files/own.txt", preyThread+"/files/notes.txt", 1)},
		{http.MethodPut, signed},
		{http.MethodDelete, signed},
		{http.MethodGet, path + "signature=" + flipped},
		{http.MethodGet, path + "signature=" + signature[:len(signature)-4]},
		{http.MethodGet, path + "signature="},
		{http.MethodGet, strings.TrimSuffix(path, "?")},
	} {
		var body any
		if try.method == http.MethodPut {
			body = []byte("forged")
		}
		got, err := a.stranger.do(ctx, try.method, try.url, body)
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("%s %s: %s", try.method, try.url, got)
		}
	}
	return gone(ctx, a.plain, "/v1/threads/"+thread)
}

func signedURLOfDeadKey(ctx context.Context, a *arena) error {
	c, id, err := a.keyAndID(ctx, attackerTenant, envPlain, "execute", "read")
	if err != nil {
		return err
	}
	const thread = "redteam-signed-dead"
	signed, err := a.sign(ctx, c, thread)
	if err != nil {
		return err
	}
	if err := a.admin.must(ctx, http.MethodDelete, "/v1/admin/tenants/"+attackerTenant+"/keys/"+id, nil, nil); err != nil {
		return err
	}
	got, err := a.stranger.do(ctx, http.MethodGet, signed, nil)
	if err != nil {
		return err
	}
	if got.Status < 400 {
		return found("the URL of a revoked key is answered: %s", got)
	}
	return gone(ctx, a.plain, "/v1/threads/"+thread)
}

// foreignPreview needs no more than names: a preview's name is all that protects it.
func foreignPreview(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	if p["preview"] == "" {
		return skip("this server has no previews (preview_url is off)")
	}
	host, err := hostOf(p["preview"])
	if err != nil {
		return err
	}
	ask := func(host string) (*answer, error) {
		return raw(ctx, a.base, "GET / HTTP/1.1\r\nHost: "+host+"\r\nAccept: application/json\r\nConnection: close\r\n\r\n")
	}
	name, domain, _ := strings.Cut(host, ".")
	parts := strings.Split(name, "-")
	secret := parts[len(parts)-1]
	none, err := ask(strings.Replace(host, secret, strings.Repeat("a", len(secret)), 1))
	if err != nil {
		return err
	}
	if none.Status != http.StatusNotFound {
		return found("a preview that never was: %s", none)
	}
	for _, guess := range []string{
		"8001-" + strings.TrimPrefix(name, "8000-"), // another port with the same secret
		strings.TrimSuffix(name, "-"+secret),
		name[:len(name)-1],
		"8000-" + p["sandbox"],
	} {
		got, err := ask(guess + "." + domain)
		if err != nil {
			return err
		}
		if got.Status != none.Status || len(got.Body) != len(none.Body) && string(got.Body) != string(none.Body) {
			return found("the server answered the guess %s with %s, but an unknown name with %s", guess, got, none)
		}
	}
	return nil
}
