// Package transport is the HTTP client of the model adapters. It converts a provider's
// rejections to typed errors, keeps keys out of messages, follows no redirects, retries
// nothing, and limits what a provider may send.
package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Limits of a provider's stream, in bytes of HTTP. They are large because the last event of
// the Responses protocol repeats the whole answer.
const (
	maxStream = 256 << 20
	maxEvent  = 16 << 20
	maxError  = 64 << 10 // of a refusal's body
)

// answerTimeout limits how long a provider may take to send its response headers. Providers
// whose models think before they stream send headers first.
const answerTimeout = 5 * time.Minute

// New returns the transport to providers. It connects to the addresses that allow permits, and
// never through a proxy.
func New(allow outbound.List) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return allow.Dial(ctx, nil, network, address)
		},
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		MaxIdleConns: 256, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: answerTimeout, MaxResponseHeaderBytes: 64 << 10,
	}
}

// Check rejects a base URL that Atoll may not connect to.
func Check(ctx context.Context, allow outbound.List, base *url.URL) error {
	if err := checkScheme(ctx, allow, base); err != nil {
		return err
	}
	return allow.Check(ctx, nil, "base_url", base.Hostname())
}

// CheckOffline is Check without a DNS lookup. The transport still checks the resolved address
// of each connection.
func CheckOffline(allow outbound.List, base *url.URL) error {
	ctx := context.Background()
	if err := checkScheme(ctx, allow, base); err != nil {
		return err
	}
	if _, err := netip.ParseAddr(base.Hostname()); err != nil {
		return nil
	}
	return allow.Check(ctx, nil, "base_url", base.Hostname())
}

func checkScheme(ctx context.Context, allow outbound.List, base *url.URL) error {
	if base.Scheme != "https" && !allow.Opens(ctx, base.Hostname()) {
		return fault.New(fault.Invalid, "base_url must begin with https://; the operator can allow plain HTTP to a host with model_allow, or with --dev to this machine for a model of the tenant dev alone")
	}
	return nil
}

// Client returns the HTTP client of one model over rt.
func Client(rt http.RoundTripper, key string) *http.Client {
	return &http.Client{
		Transport:     &typed{rt, key},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// typed converts every response that is not the start of a stream to a *model.Error.
type typed struct {
	next http.RoundTripper
	key  string
}

// RoundTrip implements http.RoundTripper.
func (t *typed) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, unreachable(r.Context(), err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, maxError))
		if err != nil && r.Context().Err() != nil {
			return nil, context.Cause(r.Context())
		}
		return nil, refusal(res, body, t.key)
	}
	if media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); media == "application/json" || media == "text/html" {
		_ = res.Body.Close() // what it says is not read
		return nil, model.Errorf(model.Broken, "the provider answered with %s in place of a stream: is the base URL that of its API?", media)
	}
	res.Body = &bounded{body: res.Body, ctx: r.Context()}
	return res, nil
}

// unreachable returns the error of a request without an answer. It omits the URL that errors of
// net/http may contain.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*net.AddrError](err); ok {
		return model.Errorf(model.Rejected, "the provider's address is %s", e.Err)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return model.Errorf(model.Transient, "the provider's host is not known")
	}
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		return model.Errorf(model.Transient, "the provider cannot be reached: %s", why)
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return model.Errorf(model.Transient, "the provider cannot be reached: %s: %v", e.Op, e.Err)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return model.Errorf(model.Transient, "the provider did not answer in time")
	}
	return model.Errorf(model.Transient, "the connection to the provider was cut")
}

// Failure converts an error of an SDK to the error that a Model returns.
func Failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	return model.Errorf(model.Broken, "the request to the provider could not be made")
}

// Ended returns the error of a stream that ended early. err is the decoder's error and may be nil.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	return model.Errorf(model.Transient, "the provider's answer was cut short")
}

// bounded limits the body of a stream of server-sent events.
type bounded struct {
	body               io.ReadCloser
	ctx                context.Context
	total, event, line int
	lone               bool         // the line is one "\r"
	json               wire.Counter // of the event
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.total += n
	for rest := p[:n]; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		b.event += len(line)
		if err := b.json.Add(line); err != nil {
			return 0, model.Errorf(model.Broken, "the provider sent an event with %v", err)
		}
		if len(line) > 0 {
			b.lone = b.line == 0 && string(line) == "\r"
			b.line += len(line)
		}
		if b.event > maxEvent {
			return 0, model.Errorf(model.Broken, "the provider sent an event of more than %d bytes", maxEvent)
		}
		switch {
		case !ended:
			continue
		case b.line == 0 || b.lone: // an empty line ends an event
			b.event, b.json = 0, wire.Counter{}
		default:
			b.event++
			_ = b.json.Add([]byte("\n")) // counts nothing
		}
		b.line, b.lone = 0, false
	}
	if b.total > maxStream {
		return 0, model.Errorf(model.Broken, "the provider sent more than %d bytes", maxStream)
	}
	if err != nil && err != io.EOF && b.ctx.Err() == nil {
		err = model.Errorf(model.Transient, "the connection to the provider was cut")
	}
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.body.Close() }

// Schema decodes a JSON schema for an SDK. An empty schema allows an object without properties.
func Schema(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{"type": "object", "properties": map[string]any{}}, nil
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil || out == nil {
		return nil, model.Errorf(model.Rejected, "a schema is not a JSON object")
	}
	return out, nil
}
