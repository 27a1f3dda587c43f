// Package webhook tells a receiver of its caller's choice how an execution
// ended, or a turn of a session: it builds the message, signs it and makes one attempt to deliver it.
// When to try, and how often, is for the jobs that call it.
//
// The URL comes from callers, so it must not become a way into the network that
// the server stands in. What a name resolves to is checked when a URL is
// accepted, for a good message, and again at each connection, on the address
// that is connected to: what DNS says later, or says to others, does not
// matter. Redirects are not followed and proxies from the environment not used.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

const (
	defaultTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read, so that the connection can be
	// used again. Its content is not used.
	maxAnswer = 16 << 10
)

// Config of a Client.
type Config struct {
	Version   string         // for User-Agent
	MaxOutput int64          // bytes of each stream in a message: the cut of an inline answer
	Timeout   time.Duration  // of a whole attempt; 0 for 10 s
	RootCAs   *x509.CertPool // authorities of receivers' certificates; nil for the machine's
	Allow     []string       // hosts, addresses and CIDRs that may be reached although they are not public
	Resolver  *net.Resolver  // nil for the machine's

	// Open opens a blob, for output that is not in the record; required.
	Open func(ctx context.Context, name string) (io.ReadCloser, error)
}

// Client delivers messages.
type Client struct {
	cfg    Config
	allow  outbound.List
	http   *http.Client
	memory *memory
	now    func() time.Time

	transport atomic.Pointer[http.Transport]
}

// New returns a Client. It fails when Config.Allow cannot be understood.
func New(cfg Config) (*Client, error) {
	allow, err := outbound.Parse(cfg.Allow)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	c := &Client{cfg: cfg, allow: allow, memory: newMemory(maxMemory), now: time.Now}
	c.transport.Store(c.transportFor(cfg.RootCAs))
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     current{c},
	}
	return c, nil
}

// transportFor connects to receivers that these authorities certify.
func (c *Client) transportFor(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy: nil, // a proxy would connect where this process may not
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.allow.Dial(ctx, c.cfg.Resolver, network, address)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// current is the transport of a client for the authorities of now.
type current struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (c current) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.transport.Load().RoundTrip(r)
}

// SetRootCAs changes Config.RootCAs while the client is in use. Attempts under way keep theirs.
func (c *Client) SetRootCAs(roots *x509.CertPool) {
	c.transport.Swap(c.transportFor(roots)).CloseIdleConnections()
}

// Allowed is what Config.Allow opens, for changes while the client is in use.
func (c *Client) Allowed() outbound.List { return c.allow }

// Close lets go of connections that are kept for later.
func (c *Client) Close() { c.transport.Load().CloseIdleConnections() }

// Deliver makes one attempt to tell the receiver of e, with its output where
// the record has it, about its end. It is nil once the receiver has answered
// with a status in the 200s. tried says that it is the receiver's failure, and
// not ours in putting the message together.
func (c *Client) Deliver(ctx context.Context, e *execution.Execution) (tried bool, err error) {
	// A byte of output may become six in JSON, beside two copies of itself.
	weight := 64<<10 + 8*(min(e.StdoutBytes, c.cfg.MaxOutput)+min(e.StderrBytes, c.cfg.MaxOutput))
	ctx = outbound.For(ctx, e.Tenant)
	room, err := c.memory.acquire(ctx, e.Tenant, weight)
	if err != nil {
		return false, err
	}
	defer room.release()
	body, err := c.body(ctx, e)
	if err != nil {
		return false, err
	}
	room.shrink(64<<10 + int64(len(body)))
	return c.post(ctx, e.Webhook.URL, e.Webhook.Secret, MessageID(e.TraceID), body)
}

// post makes one attempt to send a message. tried is as that of Deliver.
func (c *Client) post(ctx context.Context, to, secret, id string, body []byte) (tried bool, err error) {
	own, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(own, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return true, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Atoll/"+c.cfg.Version)
	sign(req.Header, id, secret, body, c.now())

	res, err := c.http.Do(req)
	if err != nil {
		if why, ok := outbound.Untrusted(err, outbound.Setting("webhook_ca")); ok {
			return ctx.Err() == nil, errors.New("the receiver cannot be reached: " + why)
		}
		return ctx.Err() == nil, withoutURL(err)
	}
	defer res.Body.Close()
	io.CopyN(io.Discard, res.Body, maxAnswer) //nolint:errcheck // the status has decided already
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return true, nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return true, fmt.Errorf("the receiver answered %d; redirects are not followed", res.StatusCode)
	default:
		return true, fmt.Errorf("the receiver answered %d", res.StatusCode)
	}
}

// withoutURL drops the URL that net/http puts into its errors: people keep
// secrets in them.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
