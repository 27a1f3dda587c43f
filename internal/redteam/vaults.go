package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// vaultCases try to obtain the secrets of a vault.
func vaultCases() []Case {
	return []Case{
		{"vaults/other-servers", Critical, "gives an agent MCP servers with URLs that resemble the URL of a credential", "the server sends the token only to the credential's URL", vaultServers},
		{"vaults/ended", Critical, "continues a session after it archived the credential and its vault", "the server no longer sends the token", vaultEnded},
		{"vaults/sandbox", Critical, "looks for a host's secret in the variables, files and processes of the session's sandbox", "the sandbox contains only a placeholder", vaultSandbox},
		{"vaults/shown", Critical, "reads vaults, credentials, sessions, events and the audit trail", "none of them shows a secret", vaultShown},
	}
}

// safe is a vault with one credential, and a caller that may change it.
type safe struct {
	by                caller
	vault, credential string
	secret            string
}

// newSafe creates a vault with a credential. auth is the credential's auth field.
func (a *arena) newSafe(ctx context.Context, secret string, auth map[string]any) (v safe, err error) {
	v.secret = secret
	if v.by, err = a.key(ctx, attackerTenant, envPlain, "environments", "read", "execute"); err != nil {
		return v, err
	}
	var made struct{ ID string }
	if err := v.by.must(ctx, http.MethodPost, "/v1/vaults", map[string]any{"display_name": "redteam"}, &made); err != nil {
		return v, err
	}
	v.vault = made.ID
	err = v.by.must(ctx, http.MethodPost, "/v1/vaults/"+v.vault+"/credentials", map[string]any{"auth": auth}, &made)
	v.credential = made.ID
	return v, shopOpen(err)
}

func vaultServers(ctx context.Context, a *arena) error {
	it, err := a.theActor(ctx)
	if err != nil {
		return err
	}
	l := it.lure
	name := "vault-" + token(4)
	own := l.open(name, &shop{tools: []string{"order"}})
	secret := "redteam-" + token(12)
	v, err := a.newSafe(ctx, secret, map[string]any{"type": "static_bearer", "mcp_server_url": own, "token": secret})
	if err != nil {
		return err
	}
	like := []string{
		own, "http://" + l.second + "/mcp/" + name, own + "x", own + "/more", own + "?x=1", strings.ToUpper(own[:5]) + own[5:] + "%2e", "http://" + l.addr + "/MCP/" + name, "http://" + l.addr + "//mcp/" + name, "http://" + l.addr + "/x/../mcp/" + name,
	}
	servers, tools, calls := []any{}, []any{}, []toolCall{}
	for i, u := range like {
		label := fmt.Sprintf("s%d", i)
		servers = append(servers, map[string]any{"name": label, "url": u})
		tools = append(tools, map[string]any{"type": "mcp", "server": label})
		calls = append(calls, toolCall{label + "__order", map[string]any{}})
	}
	t, err := a.converse(ctx, v.by, map[string]any{"tools": tools, "mcp_servers": servers}, map[string]any{"vault_ids": []string{v.vault}})
	if err != nil {
		return shopOpen(err)
	}
	defer func() { _ = t.end(ctx) }()
	play := l.play(steps(calls...))
	if _, err := t.send(ctx, message(play)); err != nil {
		return err
	}
	if err := l.heard(secret, func(h hit) bool { return h.Host == l.addr && h.Path == "/mcp/"+name }); err != nil {
		return err
	}
	if l.heard(secret, func(hit) bool { return false }) == nil {
		return fmt.Errorf("the server sent the token to no MCP server")
	}
	return t.kept(ctx, play, secret)
}

func vaultEnded(ctx context.Context, a *arena) error {
	it, err := a.theActor(ctx)
	if err != nil {
		return err
	}
	l := it.lure
	name := "ended-" + token(4)
	s := &shop{tools: []string{"order"}}
	own := l.open(name, s)
	secret := "redteam-" + token(12)
	v, err := a.newSafe(ctx, secret, map[string]any{"type": "static_bearer", "mcp_server_url": own, "token": secret})
	if err != nil {
		return err
	}
	t, err := a.converse(ctx, v.by, shopAgent(own, map[string]any{}), map[string]any{"vault_ids": []string{v.vault}})
	if err != nil {
		return shopOpen(err)
	}
	defer func() { _ = t.end(ctx) }()
	if _, err := t.play(ctx, order); err != nil {
		return err
	}
	count := func() (n int) {
		for _, h := range l.reached("/mcp/" + name) {
			if strings.Contains(h.Header.Get("Authorization"), secret) {
				n++
			}
		}
		return n
	}
	before := count()
	if before == 0 {
		return fmt.Errorf("the server sent the token to no MCP server")
	}
	for _, path := range []string{"/v1/vaults/" + v.vault + "/credentials/" + v.credential + "/archive", "/v1/vaults/" + v.vault + "/archive"} {
		if err := v.by.must(ctx, http.MethodPost, path, nil, nil); err != nil {
			return err
		}
		if _, err := t.play(ctx, order); err != nil {
			return err
		}
		if n := count(); n > before {
			return found("after POST %s, the server sent the token %d times", path, n-before)
		}
	}
	return nil
}

// vaultLook prints the secrets that a program finds in its sandbox's variables and files, in an
// encoding that the server does not redact.
const vaultLook = `import os
seen = set()
def look(data):
    for word in data.replace(b'\0', b'\n').split(b'\n'):
        if b'REDTEAM_VAULT' in word or b'redteam-' in word: seen.add(word)
look('\n'.join('%s=%s' % kv for kv in os.environ.items()).encode())
for p in os.listdir('/proc'):
    for name in 'environ', 'cmdline':
        try: look(open('/proc/%s/%s' % (p, name), 'rb').read())
        except OSError: pass
for base in '/home', '/tmp', '/run', '/etc', '/.atoll', '/var/tmp', '/dev/shm':
    for at, _, files in os.walk(base):
        for f in files:
            try:
                if os.path.getsize(os.path.join(at, f)) < 1 << 20: look(open(os.path.join(at, f), 'rb').read())
            except OSError: pass
print('looked', ' '.join('.'.join('%d' % (c + 1) for c in w) for w in seen))
`

// spell returns a word in the encoding of vaultLook.
func spell(word string) string {
	var parts []string
	for _, c := range []byte(word) {
		parts = append(parts, fmt.Sprint(int(c)+1))
	}
	return strings.Join(parts, ".")
}

// vaulted starts a session with a sandbox and a vault that has a new secret.
func (a *arena) vaulted(ctx context.Context) (t talk, v safe, err error) {
	if _, err := a.theActor(ctx); err != nil {
		return t, v, err
	}
	secret := "redteam-" + token(12)
	v, err = a.newSafe(ctx, secret, map[string]any{"type": "host_secret", "secret_name": "REDTEAM_VAULT", "secret_value": secret, "hosts": []string{"api.example.com"}})
	if err != nil {
		return t, v, err
	}
	t, err = a.converse(ctx, v.by, map[string]any{"tools": []any{map[string]any{"type": "sandbox"}}}, map[string]any{"vault_ids": []string{v.vault}})
	return t, v, err
}

func vaultSandbox(ctx context.Context, a *arena) error {
	t, v, err := a.vaulted(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	got, err := t.play(ctx, toolCall{"run_code", map[string]any{"language": "python", "code": vaultLook}})
	if err != nil {
		return err
	}
	results, err := t.results(ctx)
	if err != nil {
		return err
	}
	if len(results) != 1 || !strings.Contains(results[0].Content, "looked") {
		return fmt.Errorf("the looking program: %s", got.answer)
	}
	if strings.Contains(results[0].Content, spell(v.secret)) || strings.Contains(results[0].Content, v.secret) {
		return found("the sandbox contains the secret of a vault")
	}
	return nil
}

func vaultShown(ctx context.Context, a *arena) error {
	t, v, err := a.vaulted(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	play := t.lure.play(steps(toolCall{"run_code", map[string]any{"language": "bash", "code": "echo $REDTEAM_VAULT; env"}}))
	if _, err := t.send(ctx, message(play)); err != nil {
		return err
	}
	if err := t.kept(ctx, play, v.secret); err != nil {
		return err
	}
	at := "/v1/vaults/" + v.vault
	for _, path := range []string{"/v1/vaults", at, at + "/credentials", at + "/credentials/" + v.credential, "/v1/executions", "/v1/admin/tenants/" + attackerTenant + "/policy-events", "/v1/admin/tenants/" + attackerTenant + "/audit"} {
		by := v.by
		if strings.HasPrefix(path, "/v1/admin/") {
			by = a.admin
		}
		got, err := by.do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if got.Status != http.StatusOK {
			return fmt.Errorf("GET %s: %s", path, got)
		}
		if strings.Contains(string(got.Body), v.secret) {
			return found("GET %s shows the secret of a vault", path)
		}
	}
	return nil
}
