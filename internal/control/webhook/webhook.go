// Package webhook tells a receiver how an execution or a session's turn ended. It builds
// the message, signs it and makes one attempt to deliver it. Package jobs repeats attempts
// after the waits of Retries.
//
// Callers choose the URL, so it must not open a way into the server's own network. Atoll
// resolves and checks the host when it accepts a URL, for a clear error. It checks the
// address again at each connection, so a later DNS answer cannot bypass the rules. It
// follows no redirects and uses no proxies from the environment.
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
	// maxAnswer limits the bytes read from an answer. Their content is ignored; reading
	// them makes the connection reusable.
	maxAnswer = 16 << 10
)

// Config configures a Client.
type Config struct {
	Version   string         // for User-Agent
	MaxOutput int64          // bytes of each stream in a message, as in an inline answer
	Timeout   time.Duration  // of a whole attempt; 0 means 10 s
	RootCAs   *x509.CertPool // authorities for receivers' certificates; nil means the machine's
	Allow     []string       // hosts, addresses and CIDRs to allow although they are not public
	Resolver  *net.Resolver  // nil means the machine's

	// Open opens a blob with output that is not in the record; required.
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

// New returns a Client. It fails if Config.Allow is invalid.
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

// transportFor returns a transport to receivers certified by roots.
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

// current is a transport that follows changes by SetRootCAs.
type current struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (c current) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.transport.Load().RoundTrip(r)
}

// SetRootCAs changes Config.RootCAs while the client is in use. Running attempts keep the old ones.
func (c *Client) SetRootCAs(roots *x509.CertPool) {
	c.transport.Swap(c.transportFor(roots)).CloseIdleConnections()
}

// Allowed returns the list of Config.Allow, so that callers can change it while the client is in use.
func (c *Client) Allowed() outbound.List { return c.allow }

// Close closes idle connections.
func (c *Client) Close() { c.transport.Load().CloseIdleConnections() }

// Deliver makes one attempt to report the end of e, with its output, to the receiver.
// It returns nil if the receiver answers with a 2xx status. tried reports that an
// error is the receiver's, and not a failure of ours to build the message.
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

// post makes one attempt to send a message. tried has the meaning of Deliver.
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

// withoutURL drops the URL that net/http puts into its errors, because it may
// contain secrets.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
