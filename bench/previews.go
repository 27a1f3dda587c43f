package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

// nodePage is a server of one static page.
const nodePage = `require("http").createServer((q, r) => r.end("<p>a page</p>")).listen(8000, "127.0.0.1")`

// nginxPage has another server do the same, in one process as the first does.
const nginxPage = `daemon off; master_process off; error_log stderr; pid /tmp/nginx.pid;
events {}
http {
  access_log off; keepalive_requests 10000000; open_file_cache max=10;
  client_body_temp_path /tmp/1; proxy_temp_path /tmp/2; fastcgi_temp_path /tmp/3; uwsgi_temp_path /tmp/4; scgi_temp_path /tmp/5;
  server { listen 127.0.0.1:8001; root /home/user/www; }
}`

// preview measures previews with a server that takes little of the processors
// itself, so that it is the proxy that is measured, and beside it with Node.js.
func (p *pool) preview(ctx context.Context, b *bench) error {
	files, err := b.rig.Nginx(ctx)
	if err != nil {
		return err
	}
	if err := p.shell(ctx, "default", `mkdir -p www; echo '<p>a page</p>' > www/index.html`); err != nil {
		return err
	}
	for name, file := range files {
		if err := p.Put(ctx, session, "default", "/home/user/nginx/"+name, file); err != nil {
			return err
		}
	}
	if _, err := p.tool(ctx, "write_file", map[string]any{"path": "nginx/conf", "content": nginxPage}); err != nil {
		return err
	}
	if err := p.shell(ctx, "default", "chmod +x nginx/nginx"); err != nil {
		return err
	}
	t, one, err := p.pages(ctx, b, 8001, "env LD_LIBRARY_PATH=nginx nginx/nginx -c /home/user/nginx/conf")
	if err != nil {
		return err
	}
	p.add(report.Row{
		Case: "a static page through a preview", Unit: "requests/s", Measured: t.perSecond(), Sample: t.each.Summary(), Must: report.AtLeast(3000),
		Note: "nginx in the sandbox, 8 clients that keep their connections, on the same cores; " + t.note(),
	})
	p.add(row("the same, one at a time, p50", one, 2))
	t, one, err = p.pages(ctx, b, 8000, fmt.Sprintf("node -e '%s'", nodePage))
	if err != nil {
		return err
	}
	p.add(report.Row{
		Case: "a page of Node.js through a preview", Unit: "requests/s", Measured: t.perSecond(), Sample: t.each.Summary(), Note: "the same; " + t.note(),
	})
	r := row("the same, one at a time, p50", one, 2)
	r.Must = nil
	p.add(r)
	return nil
}

// pages starts a server and fetches its page, by many and by one.
func (p *pool) pages(ctx context.Context, b *bench, port int, command string) (t throughput, one report.Sample, err error) {
	if err := p.shell(ctx, "default", fmt.Sprintf(`(%s > /dev/null 2>&1 &); until curl -sfo /dev/null http://127.0.0.1:%d/; do sleep 0.1; done`, command, port)); err != nil {
		return t, nil, err
	}
	answer, err := p.Call(ctx, http.MethodPost, "/v1/sessions/"+session+"/tools/browse", map[string]any{"port": port})
	if err != nil {
		return t, nil, err
	}
	var out struct{ URL string }
	if err := json.Unmarshal(answer, &out); err != nil {
		return t, nil, err
	}
	at, err := url.Parse(out.URL)
	if err != nil {
		return t, nil, err
	}
	page := p.Page(at.Host, httpClients)
	defer func() { err = errors.Join(err, page.Close()) }()
	if t, err = closedLoop(ctx, httpClients, time.Second, b.window(10*time.Second), page.Get); err != nil {
		return t, nil, err
	}
	one, err = times(b.count(300), func() (time.Duration, error) {
		begun := time.Now()
		err := page.Get(ctx)
		return time.Since(begun), err
	})
	return t, one, err
}
