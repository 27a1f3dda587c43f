package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// previewCases attack what is between a browser and a server in a sandbox.
func previewCases() []Case {
	return []Case{
		{"previews/forwarded", High, "claims other addresses in headers and in trailers, with dashes and underscores", "the server in the sandbox sees none of them", previewForwarded},
		{"previews/upgrade", High, "asks to switch to HTTP/2 in clear and to other protocols", "no connection becomes a tunnel", previewUpgrade},
		{"previews/api-key", Critical, "sends a key of the API to the server in a sandbox", "it does not arrive", previewKey},
		{"previews/cookies", High, "sets cookies for the domain above, clears the site's data, and offers another server", "none of that reaches the browser", previewCookies},
		{"previews/body-as-request", Critical, "sends a request in a body that the server does not read, and then asks as another client", "each client has the answer to its own request", previewSmuggling},
		{"previews/methods", High, "sends methods and targets that would become other requests", "each is refused", previewMethods},
		{"previews/apart", High, "asks a preview's host for the API, and the API for a preview", "neither has anything of the other", previewApart},
		{"previews/closed", High, "uses the URL of a preview that was closed", "it leads nowhere", previewClosed},
	}
}

// echoPort is that of the server in the sandbox.
const echoPort = "8700"

// echoServer answers with what it was sent. It reads no body: what follows a header it
// takes for the next request, except below /all, which has all that comes.
const echoServer = `import socket, threading
def serve(c):
    buf = b''
    while True:
        while b'\r\n\r\n' not in buf:
            d = c.recv(65536)
            if not d: return
            buf += d
        head, buf = buf.split(b'\r\n\r\n', 1)
        if b' /all' in head.split(b'\r\n')[0]:
            c.settimeout(0.3)
            try:
                while True:
                    d = c.recv(65536)
                    if not d: break
                    buf += d
            except OSError: pass
            c.settimeout(None); head += b'\n\n' + buf; buf = b''
        body = b'ECHO ' + head
        c.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: redteam=1; Domain=localhost; Path=/\r\nClear-Site-Data: "*"\r\nAlt-Svc: h3=":443"\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 8700)); s.listen(64)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`

// theEcho starts the server and returns the host of its preview; "" where the server
// has no previews.
func (a *arena) theEcho(ctx context.Context) (string, error) {
	host, err := a.echo.get(ctx, func(ctx context.Context) (string, error) {
		s, err := a.theBox(ctx)
		if err != nil {
			return "", err
		}
		got, err := s.by.do(ctx, http.MethodPut, s.path("/previews/"+echoPort), nil)
		if err != nil {
			return "", err
		}
		if got.Status == http.StatusNotFound {
			return "", nil
		}
		if got.Status >= 300 {
			return "", fmt.Errorf("open a preview: %s", got)
		}
		if err := s.by.must(ctx, http.MethodPost, s.path("/processes"), map[string]any{"argv": []string{"python3", "-c", echoServer}}, nil); err != nil {
			return "", err
		}
		host, err := hostOf(urlOf(got.Body))
		if err != nil {
			return "", err
		}
		first, err := a.visit(ctx, host, "GET /first HTTP/1.1", "", "")
		if err == nil && !strings.HasPrefix(string(first.Body), "ECHO GET /first") {
			err = fmt.Errorf("the server in the sandbox: %s", first)
		}
		return host, err
	})
	if err == nil && host == "" {
		return "", skip("this server has no previews (preview_url is off)")
	}
	return host, err
}

// visit sends a request to a preview. head is more of its header, whole lines.
func (a *arena) visit(ctx context.Context, host, line, head, body string) (*answer, error) {
	return raw(ctx, a.base, line+"\r\nHost: "+host+"\r\nConnection: close\r\n"+head+"\r\n"+body)
}

// echoed visits and wants the echo to be without some words.
func (a *arena) echoed(ctx context.Context, line, head, body string, without ...string) error {
	host, err := a.theEcho(ctx)
	if err != nil {
		return err
	}
	got, err := a.visit(ctx, host, line, head, body)
	if err != nil {
		return err
	}
	for _, word := range without {
		if got.Status == http.StatusOK && strings.Contains(strings.ToLower(string(got.Body)), strings.ToLower(word)) {
			return found("%s arrives in the sandbox as part of %s", word, line)
		}
	}
	if got.Status >= 500 {
		return found("%s: %s", line, got)
	}
	return nil
}

func previewForwarded(ctx context.Context, a *arena) error {
	const claims = "X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nx-forwarded-host: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX_Real_Ip: 6.6.6.6\r\nX-Forwarded: 6.6.6.6\r\n"
	if err := a.echoed(ctx, "GET /all/headers HTTP/1.1", claims, "", "6.6.6.6"); err != nil {
		return err
	}
	const trailers = "Transfer-Encoding: chunked\r\nTrailer: X-Forwarded-For, Forwarded, X-Real-Ip\r\n"
	return a.echoed(ctx, "POST /all/trailers HTTP/1.1", trailers, "5\r\nhello\r\n0\r\n"+claims+"\r\n", "6.6.6.6")
}

func previewUpgrade(ctx context.Context, a *arena) error {
	host, err := a.theEcho(ctx)
	if err != nil {
		return err
	}
	for _, protocol := range []string{"h2c", "TLS/1.0", "redteam", "websocket, h2c"} {
		got, err := raw(ctx, a.base, "GET /all/upgrade HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "+protocol+"\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
		if err != nil {
			return err
		}
		if got.Status == http.StatusSwitchingProtocols || strings.Contains(string(got.Body), "h2c") {
			return found("Upgrade: %s is passed on: %s", protocol, got)
		}
	}
	return nil
}

func previewKey(ctx context.Context, a *arena) error {
	for _, scheme := range []string{"Bearer", "bearer", "BEARER ", " Bearer"} {
		if err := a.echoed(ctx, "GET /all/key HTTP/1.1", "Authorization: "+scheme+" "+a.plain.key+"\r\n", "", a.plain.key); err != nil {
			return redactKey(err, a.plain.key)
		}
	}
	return nil
}

// redactKey keeps a key out of a finding.
func redactKey(err error, key string) error {
	if f, ok := err.(*finding); ok { //nolint:errorlint // it was made just now
		return found("%s", strings.ReplaceAll(f.evidence, key, "a key"))
	}
	return err
}

func previewCookies(ctx context.Context, a *arena) error {
	host, err := a.theEcho(ctx)
	if err != nil {
		return err
	}
	got, err := a.visit(ctx, host, "GET /cookies HTTP/1.1", "", "")
	if err != nil {
		return err
	}
	cookie := got.Header.Get("Set-Cookie")
	if strings.Contains(strings.ToLower(cookie), "domain") || got.Header.Get("Clear-Site-Data") != "" || got.Header.Get("Alt-Svc") != "" {
		return found("the browser is sent %s", plainHeaders(got.Header))
	}
	if !strings.Contains(cookie, "redteam=1") {
		return fmt.Errorf("a cookie without a domain is not passed on: %s", plainHeaders(got.Header))
	}
	return nil
}

func previewSmuggling(ctx context.Context, a *arena) error {
	host, err := a.theEcho(ctx)
	if err != nil {
		return err
	}
	hidden := "GET /smuggled HTTP/1.1\r\nHost: " + host + "\r\nX-Ignored: " + strings.Repeat("x", 100) + "\r\n\r\n"
	for _, method := range []string{"POST", "GET", "PUT", "OPTIONS"} {
		if _, err := a.visit(ctx, host, method+" /ignored HTTP/1.1", fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden); err != nil {
			return err
		}
		for range 3 {
			got, err := a.visit(ctx, host, "GET /next HTTP/1.1", "", "")
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(got.Body), "ECHO GET /next") {
				return found("after a body of %s that was not read, another client got %s", method, got)
			}
		}
	}
	return nil
}

func previewMethods(ctx context.Context, a *arena) error {
	host, err := a.theEcho(ctx)
	if err != nil {
		return err
	}
	for _, line := range []string{"GET /a HTTP/1.1 b HTTP/1.1", "GET /x\x0b HTTP/1.1", "G\x00T / HTTP/1.1", "GET\t/ HTTP/1.1", "CONNECT 127.0.0.1:22 HTTP/1.1", "GET /x HTTP/9.9", "GE(T / HTTP/1.1"} {
		got, err := a.visit(ctx, host, line, "", "")
		if err != nil {
			return err
		}
		if got.Status != 0 && got.Status < 400 {
			return found("%q: %s", line, got)
		}
	}
	return nil
}

func previewApart(ctx context.Context, a *arena) error {
	host, err := a.theEcho(ctx)
	if err != nil {
		return err
	}
	for _, path := range []string{"/v1/executions", "/healthz", "/openapi.json", "/mcp"} {
		got, err := a.visit(ctx, host, "GET "+path+" HTTP/1.1", "Authorization: Bearer "+a.plain.key+"\r\n", "")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(got.Body), "ECHO GET "+path) {
			return found("a preview's host answers %s itself: %s", path, got)
		}
	}
	for _, head := range []string{"X-Forwarded-Host: " + host + "\r\n", "Forwarded: host=" + host + "\r\n"} {
		got, err := raw(ctx, a.base, "GET /v1/executions HTTP/1.1\r\nHost: "+a.base.Host+"\r\nConnection: close\r\n"+head+"\r\n")
		if err != nil {
			return err
		}
		if got.Status != http.StatusUnauthorized {
			return found("the API's host, with %s: %s", strings.TrimSpace(head), got)
		}
	}
	return nil
}

func previewClosed(ctx context.Context, a *arena) error {
	if _, err := a.theEcho(ctx); err != nil {
		return err
	}
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	got, err := s.by.do(ctx, http.MethodPut, s.path("/previews/8701"), nil)
	if err != nil {
		return err
	}
	host, err := hostOf(urlOf(got.Body))
	if err != nil {
		return err
	}
	if err := gone(ctx, s.by, s.path("/previews/8701")); err != nil {
		return err
	}
	if got, err = a.visit(ctx, host, "GET / HTTP/1.1", "", ""); err != nil {
		return err
	}
	if got.Status != http.StatusNotFound {
		return found("a closed preview: %s", got)
	}
	return nil
}
