package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// webChannelCases attack the web channel, through which programs in a sandbox search and fetch.
func webChannelCases() []Case {
	return []Case{
		{"webchannel/requests", Critical, "calls the channel without its token, with other tokens, for other paths and hosts, and with ambiguous requests", "the channel answers only searches and fetches with its own token", channelRequests},
		{"webchannel/fetch", Critical, "has the channel fetch loopback, private, metadata and the machine's own addresses, also through redirects", "the server rejects each, and sends no request", channelFetch},
		{"webchannel/token", Critical, "uses the token of an ended program in the next program and in the server's API", "the server rejects it", channelToken},
		{"webchannel/bounds", High, "sends the channel large, broken and slow requests, and more calls than its limit", "the channel rejects each, and the server answers others", channelBounds},
	}
}

// channelPrelude defines helpers for the programs of these cases. ask returns the status 0 if the
// channel does not answer.
const channelPrelude = `import json, os, socket, urllib.error, urllib.parse, urllib.request
base, token = os.environ.get('ATOLL_WEB_URL', ''), os.environ.get('ATOLL_WEB_TOKEN', '')
if not base: raise SystemExit('no channel')
at = urllib.parse.urlsplit(base)
def got(*what): print('GOT', *what, flush=True)
def ask(path, auth=None, body=b'{"query":"redteam"}', method='POST', **more):
    r = urllib.request.Request(base + path, body if method != 'GET' else None, {'Content-Type': 'application/json', **more}, method=method)
    if auth is not None: r.add_header('Authorization', auth)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r, timeout=20) as a: return a.status, a.read(1 << 20).decode('utf-8', 'replace')
    except urllib.error.HTTPError as e: return e.code, e.read(1000).decode('utf-8', 'replace')
    except (OSError, ValueError) as e: return 0, str(e)
def raw(text):
    s = socket.create_connection((at.hostname, at.port or 80), 5); s.settimeout(5)
    out = b''
    try:
        s.sendall(text.encode())
        while len(out) < 4096:
            more = s.recv(4096)
            if not more: break
            out += more
    except OSError: pass
    return out.decode('latin-1')
def tried(): print('tried', flush=True)
bearer = 'Bearer ' + token
`

// channel runs one program after another in an agent's sandbox, judges each, and returns their outputs.
func (a *arena) channel(ctx context.Context, attempts int, programs ...string) (outputs []string, err error) {
	t, err := a.converse(ctx, a.plain, map[string]any{"tools": []any{map[string]any{"type": "sandbox"}, map[string]any{"type": "web_search"}, map[string]any{"type": "fetch_url"}}}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.end(ctx) }()
	var calls []toolCall
	for _, p := range programs {
		calls = append(calls, toolCall{"run_code", map[string]any{"language": "python", "code": channelPrelude + p, "timeout": 50}})
	}
	if _, err := t.play(ctx, calls...); err != nil {
		return nil, err
	}
	results, err := t.results(ctx)
	if err != nil {
		return nil, err
	}
	if len(results) != len(programs) {
		return nil, fmt.Errorf("%d of %d programs returned a result", len(results), len(programs))
	}
	for _, r := range results {
		if strings.Contains(r.Content, "no channel") {
			return nil, skip("this server gives programs no web channel (search_provider and fetch_url are off)")
		}
		_, out, _ := strings.Cut(r.Content, "stdout:\n")
		if out == "" {
			out = r.Content
		}
		if err := judge(output{Stdout: out}, attempts); err != nil {
			return nil, err
		}
		outputs = append(outputs, out)
	}
	return outputs, nil
}

func channelRequests(ctx context.Context, a *arena) error {
	_, err := a.channel(ctx, 4, `
for auth in None, '', 'Bearer', 'Bearer ', 'Bearer x', 'Basic ' + token, token, bearer + 'x', bearer[:-1], bearer.upper(), 'Bearer sk-atoll-' + 'a' * 40:
    for path in '/search', '/fetch', '/search?token=' + token:
        status, text = ask(path, auth)
        if status < 400 and status: got('an answer to', path, 'with the authorization', repr(auth)[:12], status)
tried()
for method in 'POST', 'GET', 'PUT', 'DELETE':
    for path in '/v1/executions', '/v1/admin/tenants', '/v1/sandbox/execute', '/v1/sessions', '/mcp', '/metrics', '/healthz', '/openapi.json', '/search/../v1/executions', '//v1/executions', '/fetch/../../v1/admin/tenants', '/%2e%2e/v1/executions', '/', '/v1/models':
        status, text = ask(path, bearer, method=method)
        if 0 < status < 400: got('an answer to', method, path, status)
tried()
auth = '\r\nAuthorization: ' + bearer + '\r\n'
for line in 'GET http://127.0.0.1:`+portOf(a)+`/v1/executions HTTP/1.1', 'CONNECT 127.0.0.1:`+portOf(a)+` HTTP/1.1', 'GET http://169.254.169.254/ HTTP/1.1', 'OPTIONS * HTTP/1.1', 'TRACE / HTTP/1.1':
    out = raw(line + '\r\nHost: 127.0.0.1:`+portOf(a)+`' + auth + 'Connection: close\r\n\r\n')
    if out[9:10] in ('1', '2', '3') and not line.startswith('OPTIONS'): got('an answer to', line, out[:80])
tried()
body = '{"query":"redteam"}'
two = raw('POST /search HTTP/1.1\r\nHost: x' + auth + 'Content-Type: application/json\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/executions HTTP/1.1\r\nHost: x%s\r\n' % (len(body), auth))
if two.count('HTTP/1.1 2') > 1 or '"data"' in two: got('a second answer to one request', two[:200])
tried()
`)
	return err
}

func channelFetch(ctx context.Context, a *arena) error {
	l := a.anyLure(ctx)
	urls := inner(a, l)
	if l != nil {
		for _, u := range inner(a, l) {
			urls = append(urls, l.astray(u))
		}
	}
	_, err := a.channel(ctx, 1, `
for url in `+asJSON(urls)+`:
    status, text = ask('/fetch', bearer, json.dumps({'url': url}).encode())
    if status == 404 and 'fetch_url' in text: break
    if status == 200 and any(c.get('text') for c in json.loads(text)['contents']): got('the page', url, text[:200])
    if 'connection refused' in text or 'timed out' in text: got('a try to fetch', url, text[:200])
tried()
`)
	if err == nil && l != nil {
		err = l.strayed()
	}
	return err
}

func channelToken(ctx context.Context, a *arena) error {
	const keep = `
open('/home/user/redteam-token', 'w').write(token)
status, text = ask('/search', bearer)
if status == 401 or status == 403: print('the token itself is refused', text)
print('spelled', '.'.join('%d' % (ord(c) + 1) for c in token))
tried()
`
	const again = `
old = open('/home/user/redteam-token').read()
if old == token: got('the same token as the program before')
for path in '/search', '/fetch':
    status, text = ask(path, 'Bearer ' + old)
    if 0 < status < 400 or status == 400: got('an answer with the token of a program that has ended', path, status, text[:200])
tried()
`
	out, err := a.channel(ctx, 1, keep, again)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(out[0], "spelled ")
	var token []byte
	for part := range strings.SplitSeq(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), ".") {
		var c int
		if _, err := fmt.Sscan(part, &c); err != nil {
			return fmt.Errorf("the program printed no token: %.200s", out[0])
		}
		token = append(token, byte(c-1))
	}
	for _, path := range []string{"/v1/models", "/v1/executions", "/v1/admin/tenants", "/v1/tools"} {
		got, err := a.as(string(token)).do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if got.Status != http.StatusUnauthorized {
			return found("GET %s with the token of a program: %s", path, got)
		}
	}
	return nil
}

func channelBounds(ctx context.Context, a *arena) error {
	_, err := a.channel(ctx, 3, `
for body in b'x' * (1 << 20), b'[' * 50000, b'{"query":' + b'["x",' * 10000 + b'"x"' + b']' * 10000 + b'}', b'{"query":"' + b'x' * 3000 + b'"}', b'{"query":["x","x","x","x","x","x"]}', b'', b'null', b'{"query":"x","max_results":1e9}':
    status, text = ask('/search', bearer, body)
    if 0 < status < 400 or status >= 500 and status != 503: got('an answer to', body[:40], status, text[:100])
tried()
open_ones = []
for i in range(64):
    s = socket.create_connection((at.hostname, at.port or 80), 5)
    s.sendall(b'POST /search HTTP/1.1\r\nHost: x\r\nAuthorization: ' + bearer.encode() + b'\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{')
    open_ones.append(s)
tried()
for s in open_ones: s.close()
import http.client, threading
counts = {}
def many():
    c = http.client.HTTPConnection(at.hostname, at.port or 80, timeout=20)
    for i in range(280):
        try:
            c.request('POST', '/search', b'{"query":""}', {'Authorization': bearer, 'Content-Type': 'application/json'})
            r = c.getresponse(); r.read(); status = r.status
        except (OSError, http.client.HTTPException): c.close(); status = 0
        counts[status] = counts.get(status, 0) + 1
        if status == 429: return
ts = [threading.Thread(target=many) for _ in range(4)]
for t in ts: t.start()
for t in ts: t.join()
if 429 not in counts or 200 in counts or any(s >= 500 and s != 503 for s in counts): got('answers', counts)
tried()
`)
	if err != nil {
		return err
	}
	return a.admin.must(ctx, http.MethodGet, "/healthz", nil, nil)
}
