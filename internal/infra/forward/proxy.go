package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/preview"
)

const (
	// maxEarly is how many 1xx answers a server may send before its answer.
	maxEarly = 16
	// headerTime is how long a header waits for a body whose length it has. Pieces of a
	// body do not wait: an answer sends them, or the proxy where the length is not known.
	headerTime = 5 * time.Millisecond
)

// visit is one request to a preview.
type visit struct {
	to     preview.Target
	place  *place
	out    *answer
	failed func(w http.ResponseWriter, err error)
	body   *requestBody    // nil for a request without one
	ctx    context.Context // of the request; a connection is made for no longer than that
	until  time.Time       // the request waits for something to listen
	early  int             // 1xx answers so far; the transport's reader counts them
}

type visitKey struct{}

// context returns v.ctx with v and the hooks of its transport.
func (v *visit) context() context.Context {
	return httptrace.WithClientTrace(context.WithValue(v.ctx, visitKey{}, v), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			c, ok := got.Conn.(*conn)
			switch {
			case !ok:
			case v.body != nil:
				c.carry(v.body)
			case got.Reused:
				c.settle()
			}
		},
		// A transport with such a hook leaves the bound to it.
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if v.early++; v.early > maxEarly {
				return fmt.Errorf("more than %d answers before the one", maxEarly)
			}
			return nil
		},
	})
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// newProxy returns the proxy of all previews. Every request that it gets has a visit
// in its context.
func (p *Proxy) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: modifyAnswer,
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return visitOf(r.Context()).place.transport(r).RoundTrip(r)
		}),
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			p.fail(r, visitOf(r.Context()), err)
		},
		FlushInterval: headerTime,
		BufferPool:    buffers{},
		ErrorLog:      slog.NewLogLogger(p.cfg.Log.Handler(), slog.LevelDebug),
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// rewrite makes the request for the server in the sandbox. The server sees the host
// that the browser sees, so that the redirects it makes and the origins it checks are
// right.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	v, in, out := visitOf(pr.In.Context()), pr.In, pr.Out
	out.URL.Scheme, out.URL.User = "http", nil
	out.URL.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(v.to.Port))) // the transport's key
	out.URL.RawQuery = strings.ReplaceAll(in.URL.RawQuery, " ", "%20")         // HTTP/2 allows spaces
	p.cleanRequest(out.Header)
	out.Header.Set("X-Forwarded-For", p.cfg.Client(in))
	out.Header.Set("X-Forwarded-Host", in.Host)
	out.Header.Set("X-Forwarded-Proto", p.cfg.Scheme())
	if !isWebSocket(out) {
		out.Header.Del("Connection")
		out.Header.Del("Upgrade")
	}
	out.Trailer = nil
	if out.Body != nil && out.ContentLength < 0 {
		out.TransferEncoding = []string{"chunked"}
		out.Trailer = v.body.announce()
	}
}

// modifyAnswer refuses an answer that is none, and takes out of its header what is not
// the server's to say.
func modifyAnswer(res *http.Response) error {
	asked := res.Request.Header.Get("Upgrade")
	switches := res.StatusCode == http.StatusSwitchingProtocols
	switch {
	case switches && (asked == "" || !strings.EqualFold(upgradeOf(res.Header), asked)):
		return fmt.Errorf("the server switches to %q, which was not asked for", upgradeOf(res.Header))
	case !switches && res.StatusCode < 200:
		return fmt.Errorf("the server answers with status %d", res.StatusCode)
	}
	cleanAnswer(res.Header)
	// The name is a secret, which pages must not tell others by linking to them.
	if res.Header.Get("Referrer-Policy") == "" {
		res.Header.Set("Referrer-Policy", "same-origin")
	}
	res.Header.Set("X-Robots-Tag", "noindex, nofollow")
	v := visitOf(res.Request.Context())
	switch {
	case switches:
		res.Status = "101 " + http.StatusText(http.StatusSwitchingProtocols)
		res.Header.Set("Connection", "Upgrade")
		res.Header.Set("Upgrade", asked)
	case res.ContentLength < 0:
		cleanTrailer(res.Trailer)
		res.Body = &trailedBody{res.Body, res}
	}
	if v.out.length = res.ContentLength; v.body != nil {
		v.out.length++ // the transport may wait for the request's body before it says that this one is over
	}
	return nil
}

// trailedBody cleans the trailer that comes with the end of a body.
type trailedBody struct {
	io.ReadCloser
	res *http.Response
}

func (b *trailedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		cleanTrailer(b.res.Trailer)
	}
	return n, err
}

// buffers is a httputil.BufferPool.
type buffers struct{}

var bufferPool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (buffers) Get() []byte { return bufferPool.Get().(*[32 << 10]byte)[:] }

func (buffers) Put(b []byte) { bufferPool.Put((*[32 << 10]byte)(b)) }
