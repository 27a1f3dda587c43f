package redteam

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// The protocols of other vendors are not in the server's document, so that their
// operations are listed here. SANDBOX stands for an id.

const (
	e2bRoot        = "/e2b"
	cloudflareRoot = "/v1/sandbox"
	idWord         = "SANDBOX"
)

// doorCall is an operation of such a protocol.
type doorCall struct {
	method, path string
	in           any
}

// e2bCalls take an API key.
var e2bCalls = []doorCall{
	{http.MethodGet, "/sandboxes/SANDBOX", nil}, {http.MethodPost, "/sandboxes/SANDBOX/timeout", map[string]any{"timeout": 60}},
	{http.MethodPost, "/sandboxes/SANDBOX/refreshes", nil}, {http.MethodPut, "/sandboxes/SANDBOX/network", map[string]any{}},
	{http.MethodPost, "/sandboxes/SANDBOX/pause", nil}, {http.MethodPost, "/sandboxes/SANDBOX/fork", nil}, {http.MethodGet, "/sandboxes/SANDBOX/metrics", nil},
	{http.MethodPost, "/sandboxes/SANDBOX/snapshots", nil}, {http.MethodPost, "/sandboxes/SANDBOX/connect", map[string]any{"timeout": 60}},
	{http.MethodPost, "/sandboxes/SANDBOX/resume", map[string]any{"timeout": 60}}, {http.MethodPost, "/v2/sandboxes/SANDBOX/connect", map[string]any{"timeout": 60}},
	{http.MethodDelete, "/sandboxes/SANDBOX", nil},
}

// e2bServices take the access token of a sandbox.
var e2bServices = []doorCall{
	{http.MethodGet, "/files?path=/home/user/notes.txt", nil}, {http.MethodPost, "/files?path=/home/user/notes.txt", []byte("the attacker's")},
	{http.MethodPost, "/filesystem.Filesystem/ListDir", map[string]any{"path": "/home/user"}}, {http.MethodPost, "/filesystem.Filesystem/Stat", map[string]any{"path": "/home/user/notes.txt"}},
	{http.MethodPost, "/filesystem.Filesystem/Remove", map[string]any{"path": "/home/user/notes.txt"}}, {http.MethodPost, "/process.Process/List", map[string]any{}},
	{http.MethodPost, "/execute", map[string]any{"code": "print(open('notes.txt').read())"}}, {http.MethodGet, "/contexts", nil},
}

var cloudflareCalls = []doorCall{
	{http.MethodGet, "/SANDBOX/running", nil}, {http.MethodPost, "/SANDBOX/exec", map[string]any{"argv": []string{"id"}}},
	{http.MethodGet, "/SANDBOX/file/workspace/notes.txt", nil}, {http.MethodPut, "/SANDBOX/file/workspace/notes.txt", []byte("the attacker's")},
	{http.MethodPost, "/SANDBOX/persist", nil}, {http.MethodPost, "/SANDBOX/hydrate", []byte("x")}, {http.MethodGet, "/SANDBOX/pty", nil},
	{http.MethodPost, "", nil}, {http.MethodDelete, "/SANDBOX", nil},
}

const (
	e2bKey   = "X-Api-Key"
	e2bToken = "X-Access-Token"
)

// e2bServed skips a case where the door is closed.
func (a *arena) e2bServed(ctx context.Context) error {
	got, err := a.stranger.do(ctx, http.MethodGet, e2bRoot+"/sandboxes", nil, e2bKey, a.plain.key)
	if err == nil && got.Status == http.StatusNotFound {
		return skip("this server does not serve E2B's protocol (e2b is off)")
	}
	return err
}

func foreignE2B(ctx context.Context, a *arena) error {
	if err := a.e2bServed(ctx); err != nil {
		return err
	}
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	id, none := p["sandbox"], never(p["sandbox"])
	for _, c := range e2bCalls {
		var got [2]*answer
		for i, name := range []string{id, none} {
			if got[i], err = a.stranger.do(ctx, c.method, e2bRoot+strings.Replace(c.path, idWord, name, 1), c.in, e2bKey, a.plain.key); err != nil {
				return err
			}
		}
		if err := alike(c.method+" "+c.path, got[0], got[1], id, none); err != nil {
			return err
		}
		if got[0].Status != http.StatusNotFound {
			return found("%s %s: %s", c.method, c.path, got[0])
		}
	}
	if err := turnedToken(ctx, a, id); err != nil {
		return err
	}
	theirs := sandbox{by: a.victim, ID: id}
	return a.intact(ctx, theirs.path("/files", "path", "/home/user/notes.txt"))
}

// turnedToken takes the access token of a sandbox of the attacker's, and writes the
// victim's into it.
func turnedToken(ctx context.Context, a *arena, id string) error {
	own, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	got, err := a.stranger.do(ctx, http.MethodPost, e2bRoot+"/sandboxes/"+own.ID+"/connect", map[string]any{"timeout": 600}, e2bKey, a.plain.key)
	if err != nil {
		return err
	}
	var made struct {
		Token  string `json:"envdAccessToken"`
		Name   string `json:"sandboxID"` // with the token of its hosts
		Domain string `json:"domain"`
	}
	if got.Status >= 300 || json.Unmarshal(got.Body, &made) != nil || made.Token == "" {
		return errors.New("the attacker's own sandbox gives no access token: " + got.String())
	}
	raw, err := base64.RawURLEncoding.DecodeString(made.Token)
	if err != nil || !bytes.Contains(raw, []byte(own.ID)) {
		return errors.New("the access token is none that this case knows")
	}
	turned := bytes.ReplaceAll(raw, []byte(own.ID), []byte(id))
	both := bytes.ReplaceAll(turned, []byte(a.ids[attackerTenant]), []byte(a.ids[victimTenant]))
	for _, c := range e2bServices {
		for _, token := range []string{base64.RawURLEncoding.EncodeToString(turned), base64.RawURLEncoding.EncodeToString(both), a.plain.key, ""} {
			got, err := a.stranger.do(ctx, c.method, e2bRoot+c.path, c.in, e2bToken, token)
			if err != nil {
				return err
			}
			if got.Status != http.StatusUnauthorized {
				return found("%s %s with a token that was changed: %s", c.method, c.path, got)
			}
		}
		// Its own token, with a header that names the victim's.
		got, err := a.stranger.do(ctx, c.method, e2bRoot+c.path, c.in, e2bToken, made.Token, "E2b-Sandbox-Id", id)
		if err != nil {
			return err
		}
		if got.Status != http.StatusUnauthorized {
			return found("%s %s with a header that names another sandbox: %s", c.method, c.path, got)
		}
	}
	return turnedHost(ctx, a, id, made.Name, made.Domain, made.Token)
}

// turnedHost makes hosts of the victim's sandbox, by its id alone and with the token in
// the name of the attacker's own.
func turnedHost(ctx context.Context, a *arena, id, own, domain, token string) error {
	forged := id + own[strings.LastIndexByte(own, '-'):]
	for _, port := range []string{"8000", "49983", "49999"} {
		for _, name := range []string{id, forged} {
			for _, target := range []string{"/", "/files?path=/home/user/notes.txt", "/files?path=/home/user/notes.txt&signature=v1_x"} {
				host := port + "-" + name + "." + domain
				got, err := a.visit(ctx, host, "GET "+target+" HTTP/1.1", e2bToken+": "+token+"\r\n", "")
				if err != nil {
					return err
				}
				if got.Status != http.StatusNotFound {
					return found("%s at a host of another sandbox: %s", target, got)
				}
			}
		}
	}
	return nil
}

// foreignCloudflare has the victim attack, whose plan has no room for a sandbox more.
func foreignCloudflare(ctx context.Context, a *arena) error {
	var made struct{ ID string }
	got, err := a.plain.do(ctx, http.MethodPost, cloudflareRoot, nil)
	if err != nil {
		return err
	}
	if got.Status == http.StatusNotFound || got.Status == http.StatusMethodNotAllowed {
		return skip("this server does not serve Cloudflare's protocol (cloudflare is off)")
	}
	if got.Status >= 300 || json.Unmarshal(got.Body, &made) != nil {
		return errors.New("no sandbox is made: " + got.String())
	}
	at := cloudflareRoot + "/" + made.ID
	file := at + "/file/workspace/notes.txt"
	defer func() { _ = gone(context.WithoutCancel(ctx), a.plain, at) }() // the run's sweep has it, too
	if err := a.plain.must(ctx, http.MethodPut, file, []byte(preyText), nil); err != nil {
		return err
	}
	defer func() { _ = gone(context.WithoutCancel(ctx), a.victim, at) }()
	for _, c := range cloudflareCalls {
		if c.path == "" || strings.HasSuffix(c.path, "/pty") {
			continue
		}
		path := cloudflareRoot + strings.Replace(c.path, idWord, made.ID, 1)
		got, err := a.victim.do(ctx, c.method, path, c.in)
		if err != nil {
			return err
		}
		if bytes.Contains(got.Body, []byte(preyText)) || c.method == http.MethodGet && got.Status < 300 && strings.Contains(c.path, "/file/") {
			return found("%s %s shows another tenant's: %s", c.method, c.path, got)
		}
		if strings.HasSuffix(c.path, "/running") && bytes.Contains(got.Body, []byte("true")) {
			return found("%s %s tells that the sandbox is there: %s", c.method, c.path, got)
		}
	}
	got, err = a.plain.do(ctx, http.MethodGet, file, nil)
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK || string(got.Body) != preyText {
		return found("the file of the sandbox's tenant is now %s", got)
	}
	return nil
}

func doorsClosed(ctx context.Context, a *arena) error {
	narrow, err := a.key(ctx, attackerTenant, envPlain, "execute", "read", "tools")
	if err != nil {
		return err
	}
	open := 0
	for root, calls := range map[string][]doorCall{e2bRoot: e2bCalls, cloudflareRoot: cloudflareCalls} {
		for _, c := range calls {
			path := root + strings.Replace(c.path, idWord, "abcdef", 1)
			without, err := a.stranger.do(ctx, c.method, path, c.in)
			if err != nil {
				return err
			}
			if without.Status == http.StatusNotFound || without.Status == http.StatusMethodNotAllowed {
				break // the door is not served
			}
			open++
			if without.Status != http.StatusUnauthorized {
				return found("%s %s without a key: %s", c.method, path, without)
			}
			with, err := narrow.do(ctx, c.method, path, c.in, e2bKey, narrow.key)
			if err != nil {
				return err
			}
			if with.Status != http.StatusForbidden {
				return found("%s %s with a key that may not use sandboxes: %s", c.method, path, with)
			}
		}
	}
	if open == 0 {
		return skip("this server serves no protocols of other vendors (e2b and cloudflare are off)")
	}
	return nil
}
