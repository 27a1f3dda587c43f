// Package fetch reads pages of the web as text.
//
// Callers choose the URLs, and strangers write the pages. Package outbound checks the address
// of each connection, after DNS resolution and after redirects. Size, time, redirects and
// parsing work are limited.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Limits of a page.
const (
	maxPage      = 2 << 20 // bytes, decompressed; the rest is cut
	maxRedirects = 5
	pageTimeout  = 20 * time.Second // for all of it
	maxReading   = 2                // HTML pages parsed concurrently
)

// Fetcher fetches pages.
type Fetcher struct {
	client  *http.Client
	allow   outbound.List
	version string
	reading chan struct{}
}

var _ web.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher; the caller must call Close. allow lists the hosts that it may reach in
// addition to public addresses.
func New(allow outbound.List, version string) *Fetcher {
	f := &Fetcher{allow: allow, version: version, reading: make(chan struct{}, maxReading)}
	f.client = &http.Client{
		Timeout: pageTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fault.New(fault.Invalid, "it redirects more than %d times", maxRedirects)
			}
			r.Header.Del("Referer")
			if err := checkURL(r.URL); err != nil {
				return err
			}
			return allowed(r.Context(), r.URL)
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return allow.Dial(ctx, nil, network, address)
			},
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns: 32, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
	}
	return f
}

// Close closes idle connections.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }

// checkURL rejects URLs that cannot name a page.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.Hostname() == "":
		return fault.New(fault.Invalid, "a URL must begin with http:// or https:// and name a host")
	case u.User != nil:
		return fault.New(fault.Invalid, "a URL must not have a user name or password")
	}
	return nil
}

type mayKey struct{}

// allowed rejects URLs that the caller may not fetch, also after a redirect.
func allowed(ctx context.Context, u *url.URL) error {
	if may, _ := ctx.Value(mayKey{}).(func(*url.URL) error); may != nil {
		return may(u)
	}
	return nil
}

// Fetch implements web.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, where string, may func(*url.URL) error) (p web.Page, err error) {
	u, err := url.Parse(where)
	if err != nil {
		return p, fault.New(fault.Invalid, "it is not a URL")
	}
	if err := checkURL(u); err != nil {
		return p, err
	}
	ctx = context.WithValue(ctx, mayKey{}, may)
	if err := allowed(ctx, u); err != nil {
		return p, err
	}
	if err := f.allow.Check(ctx, nil, "the URL", u.Hostname()); err != nil {
		return p, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return p, fault.New(fault.Invalid, "it is not a URL")
	}
	req.Header.Set("User-Agent", "Atoll/"+f.version)
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8")
	res, err := f.client.Do(req)
	if err != nil {
		return p, unreachable(ctx, err)
	}
	defer res.Body.Close()
	p.URL = res.Request.URL.String()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return p, fault.New(fault.Invalid, "the page answers %d", res.StatusCode)
	}
	if enc := res.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") { // gzip is taken off by net/http
		return p, fault.New(fault.Invalid, "the page has an unsupported content encoding")
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxPage+1))
	if err != nil {
		return p, unreachable(ctx, err)
	}
	if p.Cut = len(body) > maxPage; p.Cut {
		body = body[:maxPage]
	}
	declared := res.Header.Get("Content-Type")
	if declared == "" {
		declared = http.DetectContentType(body)
	}
	if p.Media, _, err = mime.ParseMediaType(declared); err != nil {
		return p, fault.New(fault.Invalid, "the page has no content type")
	}
	return p, f.read(ctx, &p, body, declared, res.Request.URL)
}

// read extracts the text of a page.
func (f *Fetcher) read(ctx context.Context, p *web.Page, body []byte, declared string, at *url.URL) error {
	isHTML := p.Media == "text/html" || p.Media == "application/xhtml+xml"
	if !isHTML && !isText(p.Media) {
		return fault.New(fault.Invalid, "cannot read pages of type %s: only HTML, text, JSON and XML", web.Line(p.Media, 100))
	}
	text, cut := decode(body, declared)
	p.Cut = p.Cut || cut
	if !isHTML {
		p.Text = web.Lines(text)
		return nil
	}
	select {
	case f.reading <- struct{}{}:
		defer func() { <-f.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	readHTML(p, text, at)
	return nil
}

// isText reports whether a media type is text that needs no conversion.
func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") ||
		media == "application/json" || media == "application/xml" || media == "application/x-ndjson" || media == "application/javascript"
}

// decode converts a page to UTF-8 and keeps at most maxPage bytes.
func decode(body []byte, declared string) (text string, cut bool) {
	encoding, _, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], declared)
	out, err := io.ReadAll(io.LimitReader(encoding.NewDecoder().Reader(bytes.NewReader(body)), maxPage+1))
	if err != nil { // what was decoded is there
		cut = true
	}
	if len(out) > maxPage {
		out, cut = out[:maxPage], true
	}
	return strings.ToValidUTF8(string(out), "\uFFFD"), cut
}

// unreachable returns the error of a page without a complete answer.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok { // of a redirect
		return f
	}
	if a, ok := errors.AsType[*net.AddrError](err); ok {
		return fault.New(fault.Invalid, "its address is %s", a.Err)
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return fault.New(fault.Invalid, "it did not arrive within %s", pageTimeout)
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return fault.New(fault.Invalid, "its host name does not resolve")
	}
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		return fault.Wrap(fault.Invalid, fmt.Errorf("fetch: %w", err), why)
	}
	return fault.Wrap(fault.Invalid, fmt.Errorf("fetch: %w", err), "it cannot be reached")
}
