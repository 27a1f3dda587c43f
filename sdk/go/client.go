// Package atoll calls Atoll's HTTP interface.
//
// A Client has one method per operation. The types of requests and responses are in
// wire.gen.go, which is generated from api/openapi.json.
//
//	c := atoll.New("http://127.0.0.1:8080", os.Getenv("ATOLL_API_KEY"))
//	out, err := c.Execute(ctx, atoll.ExecuteRequest{Code: "print(1)"})
//
// If the server rejects a request, the method returns an *Error. If no answer arrives, it
// returns a *TransportError. errors.Is compares both with codes such as ErrNotFound.
//
// Streams are iterators. When a connection breaks, a stream reconnects and resumes if the
// server supports that. It ends with its first error. Breaking out of the loop only stops
// reading. Ending a method's context also stops the work on the server if the method says so.
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

// Option configures a Client.
type Option func(*Client)

// WithHTTPClient makes the Client send its requests with h. h.CheckRedirect should return
// http.ErrUseLastResponse, because a redirect would send the key to another host. h.Timeout
// also ends streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTimeout limits each call whose answer is one JSON value, including its retries. The
// default is DefaultTimeout; 0 means no limit. Streams, uploads and downloads last as long as
// their context.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.options.timeout = d } }

// WithRetries limits the retries of a request that is safe to repeat, and the consecutive
// attempts of a stream to reconnect. The default is DefaultRetries.
func WithRetries(n int) Option { return func(c *Client) { c.options.retries = max(n, 0) } }

// WithReconnect says whether streams reconnect when their connection breaks. The default is
// true.
func WithReconnect(on bool) Option { return func(c *Client) { c.options.reconnect = on } }

// WithIdempotencyKey sets the Idempotency-Key of a call that creates or runs something, in place of
// a random one or none. Use it for a client that makes one call:
// c.With(WithIdempotencyKey(k)).Execute(…). With a key, the work of CreateResponse, RunCode,
// ToolShell, ToolExecuteCode, ExecuteCode, Search and Fetch continues when their context ends.
func WithIdempotencyKey(key string) Option {
	return func(c *Client) { c.options.idempotency = key }
}

// New returns a Client of the server at base, such as http://127.0.0.1:8080. It follows
// no redirects, because they would send the key to another host.
func New(base, key string, with ...Option) *Client {
	c := &Client{base: strings.TrimRight(base, "/"), key: key, http: shared, options: options{
		timeout: DefaultTimeout, retries: DefaultRetries, reconnect: true,
	}}
	return c.With(with...)
}

// With returns a copy of c with the given options changed.
func (c *Client) With(with ...Option) *Client {
	other := *c
	for _, change := range with {
		change(&other)
	}
	return &other
}

// maxIdle limits the idle connections to a server. With Go's default of 2, a program with many
// concurrent calls would open a new connection for most of them.
const maxIdle = 64

// shared sends the requests of all clients, so that they share connections.
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
