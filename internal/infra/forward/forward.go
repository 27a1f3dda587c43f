// Package forward passes HTTP requests on to servers in sandboxes, over connections to their ports,
// so that neither a sandbox's network nor a port of this machine is involved.
package forward

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/atoll-run/atoll/internal/core/preview"
)

// Config configures a Proxy. All fields are required.
type Config struct {
	// Client returns the address that a request came from, through trusted proxies.
	Client func(*http.Request) string
	// Scheme returns the scheme of the URLs that browsers use.
	Scheme func() string
	// Key reports whether a word of a header looks like a key or token of the API.
	Key func(token string) bool
	Log *slog.Logger
}

// listenTime is how long a request waits for a server that may be about to listen.
const listenTime = 10 * time.Second

// Proxy implements preview.Forwarder.
type Proxy struct {
	cfg   Config
	pool  pool
	proxy *httputil.ReverseProxy
}

// New returns a Proxy.
func New(cfg Config) *Proxy {
	p := &Proxy{cfg: cfg, pool: pool{places: make(map[instance]*place)}}
	p.proxy = p.newProxy()
	return p
}

// Forward implements preview.Forwarder.
func (p *Proxy) Forward(ctx context.Context, w http.ResponseWriter, r *http.Request, to preview.Target, failed func(w http.ResponseWriter, err error)) {
	out := &answer{ResponseWriter: w, conn: http.NewResponseController(w), ctx: ctx}
	defer out.end()
	defer to.Use.Close() // before the end of the answer, which waits for the client
	defer func() { to.Use.Carried(out.written.Load()) }()
	v := &visit{to: to, out: out, failed: failed, ctx: ctx, until: time.Now().Add(listenTime)}
	var err error
	if v.place, err = p.pool.enter(to.Sandbox, to.Use.Done()); err != nil {
		p.fail(r, v, err)
		return
	}
	defer v.place.leave()
	request := r
	r = r.WithContext(v.context())
	if r.ContentLength != 0 {
		_ = out.conn.EnableFullDuplex() // HTTP/2 needs no leave
		v.body = newRequestBody(ctx, request, out.conn)
		r.Body = v.body
		defer v.body.end(out)
	}
	p.proxy.ServeHTTP(out, r)
}

// fail reports that the server in the sandbox has not answered, unless the connection has left HTTP.
func (p *Proxy) fail(r *http.Request, v *visit, err error) {
	p.cfg.Log.DebugContext(r.Context(), "preview failed", "sandbox_id", string(v.to.Sandbox), "port", int(v.to.Port), "error", err)
	if !v.out.left {
		v.failed(v.out, err)
	}
}

// Close implements preview.Forwarder.
func (p *Proxy) Close() { p.pool.close() }
