// Package atoll calls Atoll's HTTP interface.
//
// A Client has a method for each operation. Bodies are the types that api/openapi.json
// describes: wire.gen.go is generated from that document.
//
//	c := atoll.New("http://127.0.0.1:8080", os.Getenv("ATOLL_API_KEY"))
//	out, err := c.Execute(ctx, atoll.ExecuteRequest{Code: "print(1)"})
//
// A request that the server refused returns an *Error, one without an answer a
// *TransportError; errors.Is compares both with codes such as ErrNotFound.
//
// Streams are iterators. They go on by themselves when a connection breaks, where the server
// can go on, and end with their first error. To break out of the loop is to stop reading; what
// a method's context ends, it ends on the server too where the method says so.
package atoll

//go:generate go tool -modfile=../gen/go.mod oapi-codegen -config oapi-codegen.yaml ../../api/openapi.json

import (
	"net/http"
	"strings"
	"time"
)

// Client calls one server with one key. It is safe for concurrent use.
type Client struct {
	base, key string
	http      *http.Client
	options   options
}

// Defaults of a Client.
const (
	DefaultTimeout = 5 * time.Minute
	DefaultRetries = 2
)

type options struct {
	timeout     time.Duration
	retries     int
	reconnect   bool
	idempotency string
}

// Option changes what a Client does.
type Option func(*Client)

// WithHTTPClient has requests made by h, whose CheckRedirect should return
// http.ErrUseLastResponse: a redirect would take the key to another host. A Timeout of it
// also ends streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTimeout bounds each call whose answer is one JSON value, retries included; 0 is for no
// bound. It is DefaultTimeout if not given. Streams, uploads and downloads last as long as their
// context.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.options.timeout = d } }

// WithRetries is how often a request that is safe to repeat is sent again; DefaultRetries if
// not given. It is also how often in a row a stream tries to go on.
func WithRetries(n int) Option { return func(c *Client) { c.options.retries = max(n, 0) } }

// WithReconnect says whether streams go on by themselves when their connection breaks, as they
// do if it is not given.
func WithReconnect(on bool) Option { return func(c *Client) { c.options.reconnect = on } }

// WithIdempotencyKey is the Idempotency-Key of the next call, where that makes or runs something,
// instead of a random one or none. It is for a client that makes one call:
// c.With(WithIdempotencyKey(k)).Execute(…). With it the work of CreateResponse, RunCode, ToolShell,
// ToolExecuteCode, ExecuteCode, Search and Fetch goes on when their context ends.
func WithIdempotencyKey(key string) Option {
	return func(c *Client) { c.options.idempotency = key }
}

// New returns a Client of the server at base, such as http://127.0.0.1:8080. It follows
// no redirects, because they would take the key to another host.
func New(base, key string, with ...Option) *Client {
	c := &Client{base: strings.TrimRight(base, "/"), key: key, http: shared, options: options{
		timeout: DefaultTimeout, retries: DefaultRetries, reconnect: true,
	}}
	return c.With(with...)
}

// With returns a client like c, with other options.
func (c *Client) With(with ...Option) *Client {
	other := *c
	for _, change := range with {
		change(&other)
	}
	return &other
}

// maxIdle is how many idle connections to a server are kept: a program with many calls at a
// time would otherwise open a connection for most of them.
const maxIdle = 64

// shared makes the requests of all clients, so that they share connections.
var shared = &http.Client{
	Transport: func() http.RoundTripper {
		t, ok := http.DefaultTransport.(*http.Transport)
		if !ok { // the program has put something else there
			return http.DefaultTransport
		}
		t = t.Clone()
		t.MaxIdleConnsPerHost = maxIdle
		return t
	}(),
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
