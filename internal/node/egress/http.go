package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/address"
)

// gate passes on HTTP in clear, request by request. Requests are read and
// written anew, so that the server reads what was checked, whatever a client
// does to be read in two ways.
type gate struct {
	stack  *Stack
	server *http.Server
	conns  chan net.Conn
	done   chan struct{}
}

const maxHeader = 256 << 10

// newGate makes a gate for one version of HTTP: the server of both would wait
// for more bytes than a short request has.
func newGate(s *Stack, http2 bool) *gate {
	g := &gate{stack: s, conns: make(chan net.Conn), done: make(chan struct{})}
	g.server = &http.Server{
		Handler:                      http.HandlerFunc(g.handle),
		Protocols:                    new(http.Protocols),
		ReadHeaderTimeout:            s.cfg.HelloTimeout,
		IdleTimeout:                  s.cfg.IdleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // the sandbox's mistakes
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, gatedKey{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) { c.(*gated).state(state) },
	}
	g.server.Protocols.SetHTTP1(!http2)
	g.server.Protocols.SetUnencryptedHTTP2(http2)
	s.wg.Go(func() { _ = g.server.Serve(g) })
	return g
}

// Accept, Close and Addr make a gate the server's listener.

func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.conns:
		return c, nil
	case <-g.done:
		return nil, net.ErrClosed
	}
}

func (g *gate) Close() error {
	select {
	case <-g.done:
	default:
		close(g.done)
	}
	return nil
}

func (g *gate) Addr() net.Addr { return &net.TCPAddr{} }

func (g *gate) close() { _ = g.server.Close() }

type gatedKey struct{}

// gated is a connection of the sandbox that goes through the gate, and what is
// needed to answer it.
type gated struct {
	net.Conn   // HTTP in clear, also where it came by TLS
	guest      *guestConn
	secretName string // the host that a connection by TLS is to; "" in clear

	stack *Stack
	up    atomic.Pointer[net.TCPConn]
	proxy *httputil.ReverseProxy

	upload *upload // of the request under way in HTTP/1; nil if it has none

	asked  atomic.Bool // a request has come in that handle has not seen
	broken atomic.Bool // the server left a request without an answer
	once   sync.Once
	closed chan struct{}
}

// serve passes on a connection's requests until it is closed.
func (g *gate) serve(c *gated, up *net.TCPConn) {
	c.stack, c.closed = g.stack, make(chan struct{})
	c.up.Store(up)
	c.asked.Store(c.secretName == "") // in clear its beginning has been seen
	transport := c.transport(g.server.Protocols)
	defer transport.CloseIdleConnections()
	c.proxy = &httputil.ReverseProxy{
		Transport:      transport,
		FlushInterval:  -1,
		BufferPool:     proxyBuffers{},
		ErrorLog:       g.server.ErrorLog,
		Rewrite:        c.rewrite,
		ModifyResponse: c.answered,
		ErrorHandler:   c.fail,
	}
	select {
	case g.conns <- c:
		<-c.closed
	case <-g.done:
	}
}

// transport speaks to the server as the sandbox speaks to us; by TLS it and the
// server choose.
func (c *gated) transport(client *http.Protocols) *http.Transport {
	t := &http.Transport{
		DialContext:            c.dial,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 1 << 20,
		ReadBufferSize:         64 << 10,
		WriteBufferSize:        64 << 10,
		Protocols:              new(http.Protocols),
		ExpectContinueTimeout:  time.Second,
		TLSHandshakeTimeout:    c.stack.cfg.ConnectTimeout,
	}
	switch {
	case c.secretName != "":
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.secretName}
		if roots := c.stack.cfg.Roots; roots != nil {
			t.TLSClientConfig.RootCAs = roots()
		}
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
	case client.HTTP1():
		t.Protocols.SetHTTP1(true)
		t.MaxConnsPerHost = 1 // as the client has, also when the last answer is only just over
	default:
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

// rewrite makes the request that the server is sent.
func (c *gated) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", c.guest.flow.dst.String()
	r.Out.URL.RawQuery = r.In.URL.RawQuery // also what the library cannot parse
	r.Out.Host = r.In.Host
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := r.In.Header[h]; ok {
			r.Out.Header[h] = v
		}
	}
	if c.secretName != "" {
		r.Out.URL.Scheme = "https"
		if secrets := c.stack.secretsFor(c.secretName); secrets != nil {
			reveal(r.Out, secrets)
		}
	}
}

// fail is called when the server did not answer. In clear the sandbox sees what
// it would have seen; by TLS that is no longer to be had, so it is told.
func (c *gated) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if c.secretName == "" {
		c.broken.Store(true)
		panic(http.ErrAbortHandler)
	}
	what := "could not be asked"
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		what = "has no certificate that is trusted here: the operator can add its authority with 'atoll config set sandbox_ca_bundle FILE'"
	}
	http.Error(w, "atoll: "+c.secretName+", which a secret is bound to, "+what, http.StatusBadGateway)
}

// handle passes a request on if it is for a host that the connection may reach.
func (g *gate) handle(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(gatedKey{}).(*gated)
	c.asked.Store(false)
	f := c.guest.flow
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	v := g.stack.decide(f.dst, "")
	name := address.Hostname(host)
	switch {
	case !v.ok():
	case r.Method == http.MethodConnect || !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*":
		v.rule = RuleHTTPForm
	case name == "" || v.names != nil && !slices.Contains(v.names, name) || c.secretName != "" && name != c.secretName:
		v.rule = RuleHTTPHost
	}
	if !v.ok() {
		g.stack.refuse("http", host, f.dst, v.rule)
		w.Header().Set("Connection", "close")
		http.Error(w, fmt.Sprintf("atoll: the network policy of this sandbox refuses this request to %s (%s)", printable(host), v.rule), http.StatusForbidden)
		return
	}
	if f.wanted() != name {
		f.wants(name)
		g.stack.begin(f, false)
	}
	// Only WebSockets leave HTTP: what follows other upgrades, such as HTTP/2 in
	// clear, would be unchecked requests.
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.Header.Del("Upgrade")
	}
	// The request's context ends with this function, and would take the connection
	// to the server along that the next request is to have.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer context.AfterFunc(r.Context(), cancel)()
	r = r.WithContext(ctx)
	if r.ProtoMajor == 1 { // HTTP/2 lets answers and requests overlap
		c.upload = nil
		if r.ContentLength != 0 {
			c.upload = newUpload(r)
			r.Body = c.upload
		}
	}
	c.proxy.ServeHTTP(w, r)
}

// dial gives the transport the connection that was made for the sandbox's, and
// later ones if the server closes that between requests.
func (c *gated) dial(context.Context, string, string) (net.Conn, error) {
	if up := c.up.Swap(nil); up != nil {
		return &counted{up, c.guest.flow}, nil
	}
	up, err := c.stack.dial(c.guest.flow)
	if err != nil {
		return nil, err
	}
	return &counted{up, c.guest.flow}, nil
}

func (c *gated) Close() error {
	c.once.Do(func() {
		if c.broken.Load() {
			c.guest.Abort()
		}
		_ = c.Conn.Close()
		close(c.closed)
	})
	return nil
}

// state notices requests that the server answered by itself, because it did not
// understand them.
func (c *gated) state(state http.ConnState) {
	switch state {
	case http.StateActive:
		c.asked.Store(true)
	case http.StateClosed:
		if c.asked.Load() {
			c.stack.refuse("http", c.guest.flow.wanted(), c.guest.flow.dst, RuleHTTPForm)
		}
	}
}

// counted counts a connection's bytes.
type counted struct {
	net.Conn
	flow *flow
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.flow.in(n)
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.flow.out(n)
	return n, err
}

// proxyBuffers lends the buffers of raw connections to requests.
type proxyBuffers struct{}

func (proxyBuffers) Get() []byte  { return chunks.Get().(*[chunk]byte)[:] }
func (proxyBuffers) Put(b []byte) { chunks.Put((*[chunk]byte)(b[:chunk])) }
