package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
	"github.com/atoll-run/atoll/internal/core/execution"
)

const pageHTML = "<p>a page</p>\n"

// nodePage is a server of one static page, which keeps connections for as long as it
// is another server's turn.
func nodePage(port int) string {
	return fmt.Sprintf(`const s = require("http").createServer((q, r) => r.end("<p>a page</p>")); s.keepAliveTimeout = 0; s.listen(%d, "127.0.0.1")`, port)
}

// nginxPage has another server do the same, in one process as the first does, with a
// folder for what it writes and the page.
func nginxPage(dir string, port int) string {
	return fmt.Sprintf(`daemon off; master_process off; error_log stderr; pid %[1]s/pid;
events {}
http {
  access_log off; keepalive_requests 10000000; open_file_cache max=10;
  client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
  server { listen 127.0.0.1:%[2]d; root %[1]s/www; }
}`, dir, port)
}

// site is a server in a sandbox, and how the same one is started outside of it.
type site struct {
	name, command string
	port          int
	bare          func(ctx context.Context, port int) (*exec.Cmd, error)
}

// preview measures previews with a server that takes little of the processors
// itself, so that it is the proxy that is measured, and beside it with Node.js.
func (p *pool) preview(ctx context.Context, b *bench) error {
	files, err := b.rig.Nginx(ctx)
	if err != nil {
		return err
	}
	if err := p.shell(ctx, "default", fmt.Sprintf(`mkdir -p nginx/www; printf %%s '%s' > nginx/www/index.html`, pageHTML)); err != nil {
		return err
	}
	for name, file := range files {
		if err := p.Put(ctx, session, "default", "/home/user/nginx/"+name, file); err != nil {
			return err
		}
	}
	if _, err := p.tool(ctx, "write_file", map[string]any{"path": "nginx/conf", "content": nginxPage("/home/user/nginx", 8001)}); err != nil {
		return err
	}
	if err := p.shell(ctx, "default", "chmod +x nginx/nginx"); err != nil {
		return err
	}
	many, one, err := p.pages(ctx, b, &site{
		name: "nginx", port: 8001, command: "env LD_LIBRARY_PATH=nginx nginx/nginx -c /home/user/nginx/conf",
		bare: func(ctx context.Context, port int) (*exec.Cmd, error) {
			dir, err := b.rig.Temp("nginx")
			if err != nil {
				return nil, err
			}
			conf, www := filepath.Join(dir, "conf"), filepath.Join(dir, "www")
			return exec.CommandContext(ctx, files["nginx"], "-c", conf), errors.Join(
				os.WriteFile(conf, []byte(nginxPage(dir, port)), 0o600), os.Mkdir(www, 0o700),
				os.WriteFile(filepath.Join(www, "index.html"), []byte(pageHTML), 0o600),
			)
		},
	})
	if err != nil {
		return err
	}
	many.Case, many.Must = "a static page through a preview", report.AtLeast(5000)
	many.Aim = report.AtLeast(10_000)
	many.Note = fmt.Sprintf("nginx in the sandbox, %d clients that keep their connections, on the same cores; %s", httpClients, many.Note)
	one.Must = report.AtMost(2)
	p.rows = append(p.rows, many, one)
	many, one, err = p.pages(ctx, b, &site{
		name: "Node.js", port: 8000, command: fmt.Sprintf("node -e '%s'", nodePage(8000)),
		bare: func(ctx context.Context, port int) (*exec.Cmd, error) {
			return b.rig.Unsandboxed(ctx, rig.Program{Language: execution.Node, Code: nodePage(port)}), nil
		},
	})
	if err != nil {
		return err
	}
	many.Case, many.Note = "a page of Node.js through a preview", "the same; "+many.Note
	p.rows = append(p.rows, many, one)
	return nil
}

// visits is how many turns the previews and the sites beside them take.
const visits = 2

// pages starts a server and fetches its page, by many and by one, by turns with one
// that nothing is between.
func (p *pool) pages(ctx context.Context, b *bench, s *site) (many, one report.Row, err error) {
	if err := p.shell(ctx, "default", fmt.Sprintf(`(%s > /dev/null 2>&1 &); until curl -sfo /dev/null http://127.0.0.1:%d/; do sleep 0.1; done`, s.command, s.port)); err != nil {
		return many, one, err
	}
	answer, err := p.Call(ctx, http.MethodPost, "/v1/sessions/"+session+"/tools/browse", map[string]any{"port": s.port})
	if err != nil {
		return many, one, err
	}
	var out struct{ URL string }
	if err := json.Unmarshal(answer, &out); err != nil {
		return many, one, err
	}
	at, err := url.Parse(out.URL)
	if err != nil {
		return many, one, err
	}
	page := p.Page(at.Host, httpClients)
	defer func() { err = errors.Join(err, page.Close()) }()
	bare, failed := s.serve(ctx)
	if failed == nil {
		defer func() { err = errors.Join(err, bare.Stop()) }()
	}
	window := b.window(10*time.Second) / visits
	var through, beside throughput
	for range visits {
		if failed == nil {
			var t throughput
			t, failed = closedLoop(ctx, httpClients, time.Second, window, bare.Get)
			beside.add(t)
		}
		t, err := closedLoop(ctx, httpClients, time.Second, window, page.Get)
		if err != nil {
			return many, one, err
		}
		through.add(t)
	}
	c := compared{baseline: baseline{name: s.name + " on the machine"}, measured: through.each, beside: beside.each, failed: failed}
	many = c.against(report.Row{
		Unit: "requests/s", Measured: through.perSecond(), Sample: through.each.Summary(), Note: through.note(),
	}, func(report.Sample) float64 { return beside.perSecond() })
	n := b.count(300)
	singly, err := compare(n, timed(func() error { return page.Get(ctx) }), baseline{c.name + ", p50", n, timed(func() error {
		if failed != nil {
			return failed
		}
		return bare.Get(ctx)
	})})
	if err != nil {
		return many, one, err
	}
	one = singly.row("the same, one at a time, p50", 0)
	one.Must = nil
	return many, one, nil
}

// serve starts the server on the machine, at a port of its own.
func (s *site) serve(ctx context.Context) (*rig.Site, error) {
	port, err := rig.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	cmd, err := s.bare(ctx, port)
	if err != nil {
		return nil, err
	}
	return rig.ServeSite(ctx, cmd, port, httpClients)
}
