package redteam

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// inputCases send what no client would.
func inputCases() []Case {
	return []Case{
		{"input/bodies", High, "sends broken, empty, deep, doubled and wrongly typed JSON to every operation", "each is answered within 5 s, and as the client's mistake", hostileBodies},
		{"input/queries", High, "sends SQL, negative and endless numbers, and other pages' marks in every list", "each is the client's mistake, or finds nothing", hostileQueries},
		{"input/many-variables", Medium, "sends 500,000 variables", "it is refused within 5 s", manyVariables},
		{"input/framing", High, "sends requests whose length can be read in two ways", "each is refused", hostileFraming},
		{"input/image-names", High, "asks for sandboxes of images whose names are paths, or climb out of a repository", "each is refused, and says nothing of the host's files", imageNames},
		{"input/origins", High, "sends requests as pages of other origins do", "no answer permits that origin", foreignOrigin},
	}
}

// inputTime bounds the answer to a hostile body.
const inputTime = 5 * time.Second

func hostileBodies(ctx context.Context, a *arena) error {
	c, err := a.key(ctx, attackerTenant, envPlain, "execute", "read", "tools", "sandboxes", "environments")
	if err != nil {
		return err
	}
	bodies := []string{
		"", "{", "[]", `"x"`, "0", `{"code":`, strings.Repeat("[", 200_000), strings.Repeat(`{"a":`, 50_000), "{\"code\":\"\xff\xfe\"}", `{"code":"\u0000"}`, `{"code":1,"code":[]}`, `{"code":1e999999}`,
		`{"__proto__":{},"constructor":1}`, `{"name":"../x","code":{},"command":[],"path":0}`,
	}
	return a.every(ctx, func(op operation) bool { return op.Media == "application/json" }, func(op operation) error {
		for _, body := range bodies {
			began := time.Now()
			got, err := c.do(ctx, op.Method, query(op.fill(nil)), []byte(body), "Content-Type", "application/json", "Mcp-Session-Id", "redteam-none")
			if err != nil {
				return err
			}
			if got.Status >= 500 {
				return found("%s %s with %.60q: %s", op.Method, op.Path, body, got)
			}
			if took := time.Since(began); took > inputTime {
				return found("%s %s with %.60q took %v", op.Method, op.Path, body, took)
			}
		}
		return nil
	})
}

func hostileQueries(ctx context.Context, a *arena) error {
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	values := []string{"' OR '1'='1", "1; DROP TABLE executions", "-1", "99999999999999999999", "0x10", "%00", "\xff", strings.Repeat("a", 20_000), `{"$gt":""}`, "*", "%"}
	for _, list := range []string{"/v1/executions", "/v1/sandboxes", "/v1/snapshots", "/v1/threads", "/v1/usage"} {
		for _, name := range []string{"limit", "page", "status", "session", "metadata.who", "metadata.' OR 1=1 --"} {
			for _, value := range values {
				got, err := a.plain.do(ctx, http.MethodGet, list+"?"+url.Values{name: {value}}.Encode(), nil)
				if err != nil {
					return err
				}
				if got.Status >= 500 || strings.Contains(string(got.Body), preySandbox) || strings.Contains(string(got.Body), "SQL") {
					return found("GET %s with %s=%.60q: %s", list, name, value, got)
				}
			}
		}
	}
	return nil
}

func manyVariables(ctx context.Context, a *arena) error {
	var body strings.Builder
	body.WriteString(`{"code":"pass","env_vars":{`)
	for i := range 500_000 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `"v%d":"1"`, i)
	}
	body.WriteString("}}")
	began := time.Now()
	got, err := a.plain.do(ctx, http.MethodPost, "/v1/sandbox/execute", []byte(body.String()), "Content-Type", "application/json")
	if err != nil {
		return err
	}
	if got.Status < 400 || got.Status >= 500 {
		return found("500,000 variables: %s", got)
	}
	if took := time.Since(began); took > inputTime {
		return found("500,000 variables were refused after %v", took)
	}
	return nil
}

func hostileFraming(ctx context.Context, a *arena) error {
	for what, head := range map[string]string{
		"two lengths":               "Content-Length: 5\r\nContent-Length: 6",
		"two lengths in one":        "Content-Length: 5, 6",
		"a signed length":           "Content-Length: +5",
		"an unknown coding":         "Transfer-Encoding: xchunked",
		"a coding before chunked":   "Transfer-Encoding: identity, chunked",
		"two codings":               "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
		"a space before a colon":    "Transfer-Encoding : chunked",
		"a line that continues":     "X-A: b\r\n Transfer-Encoding: chunked\r\nX-B : c",
		"a NUL in a value":          "X-A: \x00",
		"two hosts":                 "Host: other.example",
		"a name with a line's end":  "X-A\rB: c",
		"a vertical tab before all": "\x0bHost: other.example",
	} {
		got, err := raw(ctx, a.base, "POST /v1/sandbox/execute HTTP/1.1\r\nHost: "+a.base.Host+"\r\nConnection: close\r\n"+head+"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
		if err != nil {
			return err
		}
		// 401 would mean that the request was taken for one.
		if got.Status != 0 && got.Status != http.StatusBadRequest && got.Status != http.StatusNotImplemented {
			return found("a request with %s: %s", what, got)
		}
	}
	return nil
}

func imageNames(ctx context.Context, a *arena) error {
	for _, name := range []string{
		"..", ".", "/etc", "../../etc", "default/../default", "./default", "default/", "images/default", "registry.example.com/team/../secret/private:1", "registry.example.com/team/./private:1",
		"registry.example.com/team//private:1", "registry.example.com/team/%2e%2e/secret:1", "registry.example.com/team/..:1", "127.0.0.1:5000/x:1", "localhost/x", "169.254.169.254/latest/meta-data:1", "file:///etc/passwd",
		"docker://x", "default\x00", "default\n", "default:../../x", "x@sha256:../../../etc/passwd", strings.Repeat("a/", 2000),
	} {
		got, err := a.plain.do(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "redteam-image-" + token(3), "image": name})
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("a sandbox of the image %.100q: %s", name, got)
		}
		for _, word := range []string{"no such file", "/var/lib", "/images/", "open /", "permission denied", "connection refused"} {
			if strings.Contains(string(got.Body), word) && !strings.Contains(name, word) {
				return found("the refusal of the image %.100q shows something of the host: %s", name, got)
			}
		}
	}
	return nil
}

func foreignOrigin(ctx context.Context, a *arena) error {
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1.evil.example", a.base.Scheme + "://" + a.base.Hostname() + ".evil.example"} {
		for _, try := range []struct{ method, path string }{{http.MethodOptions, "/v1/executions"}, {http.MethodGet, "/v1/executions"}, {http.MethodPost, "/v1/sandbox/execute"}, {http.MethodOptions, "/mcp"}, {http.MethodPost, "/mcp"}} {
			var body any
			if try.method == http.MethodPost {
				body = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			}
			got, err := a.plain.do(ctx, try.method, try.path, body, "Origin", origin, "Access-Control-Request-Method", "POST", "Content-Type", "text/plain")
			if err != nil {
				return err
			}
			if v := got.Header.Get("Access-Control-Allow-Origin"); v != "" {
				return found("%s %s from %s returns Access-Control-Allow-Origin: %s", try.method, try.path, origin, v)
			}
			if got.Status < 300 && try.method != http.MethodGet && try.method != http.MethodOptions {
				return found("%s %s from %s: %s", try.method, try.path, origin, got)
			}
		}
	}
	return nil
}
