package mcpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Bounds of what a server may send, and have sent.
const (
	maxBody      = 8 << 20 // bytes of an answer, all events of a stream together
	maxRequests  = 128     // of one call: a server's questions are answered, too
	maxRedirects = 3
	headerTime   = 2 * time.Minute
)

var (
	errSlow    = errors.New("it did not answer in time")
	errLarge   = errors.New("its answer is too large")
	errChatty  = errors.New("it sends too many requests")
	errCrossed = errors.New("it redirects to another place")
)

// exchange is the HTTP of all sessions.
type exchange struct{ *http.Transport }

func newExchange(allow outbound.List) *exchange {
	return &exchange{&http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := allow.Dial(ctx, nil, network, address)
			if err != nil {
				err = &notSent{err}
			}
			return conn, err
		},
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: headerTime, MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: 256, IdleConnTimeout: 30 * time.Second,
	}}
}

// HTTP returns a client of what servers belong to, such as the endpoints of their tokens. It
// reaches what c does, and follows no redirect.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c.http, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// notSent is an error from before a request was sent.
type notSent struct{ error }

func (e *notSent) Unwrap() error { return e.error }

// peer is the server of a session.
type peer struct {
	target  Target
	program *program    // of a Command that was started
	changed atomic.Bool // it has said that it has other tools now
}

func newPeer(t Target) *peer { return &peer{target: t} }

// hear notes that the server has other tools now.
func (p *peer) hear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "notifications/tools/list_changed" {
			p.changed.Store(true)
		}
		return next(ctx, method, req)
	}
}

// client is the HTTP client of a session. It follows a redirect within the server alone: the
// headers go along.
func (p *peer) client(via *exchange) *http.Client {
	return &http.Client{
		Transport: &bounded{via, p},
		CheckRedirect: func(r *http.Request, before []*http.Request) error {
			if first := before[0]; len(before) > maxRedirects || r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host || r.Method != first.Method {
				return http.ErrUseLastResponse
			}
			r.Header.Del("Referer")
			return nil
		},
	}
}

// seen is what came of the requests of one call.
type seen struct {
	requests atomic.Int32
	status   atomic.Int32 // of the last answer to a POST
	first    atomic.Int32 // of the first one that is no redirect
	sent     atomic.Bool  // a POST may have arrived
	large    atomic.Bool
}

type seenKey struct{}

// watch returns a context whose requests are noted.
func watch(ctx context.Context) (context.Context, *seen) {
	s := &seen{}
	return context.WithValue(ctx, seenKey{}, s), s
}

// bounded sends the requests of a session.
type bounded struct {
	via  *exchange
	peer *peer
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	s, ok := r.Context().Value(seenKey{}).(*seen)
	if !ok {
		s = &seen{} // the end of a session
	}
	if s.requests.Add(1) > maxRequests {
		return nil, errChatty
	}
	r = r.Clone(r.Context())
	for name, value := range b.peer.target.Headers {
		r.Header.Set(name, value)
	}
	res, err := b.via.RoundTrip(r)
	if _, unsent := errors.AsType[*notSent](err); !unsent && r.Method == http.MethodPost {
		s.sent.Store(true)
	}
	if err != nil {
		return nil, err
	}
	if status := int32(res.StatusCode); r.Method == http.MethodPost { // three digits
		s.status.Store(status)
		if status < 300 || status > 399 {
			s.first.CompareAndSwap(0, status)
		}
	}
	res.Body = &body{ReadCloser: res.Body, left: maxBody, seen: s}
	return res, nil
}

// body is an answer of bounded length, with a bounded number of elements.
type body struct {
	io.ReadCloser
	left int
	seen *seen
	json wire.Counter
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 || b.json.Add(p[:n]) != nil {
		b.seen.large.Store(true)
		return 0, errLarge
	}
	return n, err
}
