// Package search searches the web with SearXNG, Brave, Tavily, an MCP server, or any server
// that speaks Atoll's own search API.
package search

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Limits of a provider's answer.
const (
	maxAnswer     = 4 << 20 // bytes, decompressed
	answerTimeout = 20 * time.Second
)

// Config configures an engine.
type Config struct {
	Provider string // one of Providers
	// URL is the provider's base URL, or the endpoint itself for the provider http. "" selects
	// the provider's public URL.
	URL string
	Key string // "" for none
	// Setting is the prefix of the settings' names, for error messages.
	Setting string
}

// provider is one wire format.
type provider struct {
	url     string // the public URL; "" if the operator must set one
	keyed   bool   // it needs a key
	filters web.Filters
	ask     func(*Engine, context.Context, web.Request) (*http.Request, error)
	read    func(body []byte) ([]web.Result, error)
}

var providers = map[string]provider{
	"searxng": {filters: searxngFilters, ask: askSearXNG, read: readSearXNG},
	"brave":   {url: "https://api.search.brave.com/res/v1", keyed: true, filters: braveFilters, ask: askBrave, read: readBrave},
	"tavily":  {url: "https://api.tavily.com", keyed: true, filters: tavilyFilters, ask: askTavily, read: readTavily},
	"http":    {filters: httpFilters, ask: askHTTP, read: readHTTP},
}

// Engine is a web.Engine that asks one provider.
type Engine struct {
	provider
	name, key string
	base      *url.URL
	client    *http.Client
}

var _ web.Engine = (*Engine)(nil)

// Open returns the engine of a configuration; the caller must call Close. Errors name the
// invalid setting.
func Open(cfg Config) (*Engine, error) {
	p, ok := providers[cfg.Provider]
	if !ok {
		return nil, fmt.Errorf("%s_provider: unknown provider %q", cfg.Setting, cfg.Provider)
	}
	where := cmp.Or(cfg.URL, p.url)
	if where == "" {
		return nil, fmt.Errorf("%s_url: must be set for the provider %s", cfg.Setting, cfg.Provider)
	}
	base, err := url.Parse(strings.TrimSuffix(where, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%s_url: must be an http or https URL without user name, query and fragment", cfg.Setting)
	}
	if p.keyed && cfg.Key == "" {
		return nil, fmt.Errorf("%s_key_file: must be set for the provider %s", cfg.Setting, cfg.Provider)
	}
	allow, err := outbound.Parse([]string{base.Hostname()}) // the operator has named it
	if err != nil {
		return nil, fmt.Errorf("%s_url: %w", cfg.Setting, err)
	}
	return &Engine{provider: p, name: cfg.Provider, key: cfg.Key, base: base, client: &http.Client{
		Timeout:       answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key would go along
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return allow.Dial(ctx, nil, network, address)
			},
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
	}}, nil
}

// Close closes idle connections.
func (e *Engine) Close() { e.client.CloseIdleConnections() }

// Name implements web.Engine.
func (e *Engine) Name() string { return e.name }

// Filters implements web.Engine.
func (e *Engine) Filters() web.Filters { return e.filters }

// Search implements web.Engine. It does not retry, because the caller knows how long it can wait.
func (e *Engine) Search(ctx context.Context, r web.Request) ([]web.Result, error) {
	req, err := e.ask(e, ctx, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := e.client.Do(req)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, unreachable(ctx, err)
	case len(body) > maxAnswer:
		return nil, fault.New(fault.Unavailable, "the search provider's answer is larger than %d bytes", maxAnswer)
	case res.StatusCode != http.StatusOK:
		return nil, e.refusal(res.StatusCode, body)
	}
	if _, err := wire.Weigh("the search provider's answer", body); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the search provider's answer cannot be read")
	}
	found, err := e.read(body)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the search provider's answer cannot be read")
	}
	return found, nil
}

// refusal returns the error of an answer without success. The provider's message is for the
// operator, because it may be about the account and not about the query.
func (e *Engine) refusal(status int, body []byte) error {
	said := errors.New(transport.Scrub(cmp.Or(transport.ReadError(body).Message, string(body[:min(len(body), 500)])), e.key))
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return fault.Wrap(fault.Invalid, said, fmt.Sprintf("the search provider does not take this query (%d)", status))
	case http.StatusUnauthorized:
		return fault.Wrap(fault.Unavailable, said, "the search provider rejects this server's key (401)")
	case http.StatusForbidden:
		if e.name == "searxng" {
			said = fmt.Errorf("search.formats of SearXNG's settings.yml must have json: %w", said)
		}
	}
	return fault.Wrap(fault.Unavailable, said, fmt.Sprintf("the search provider answered %d", status))
}

// unreachable returns the error of a request without a complete answer. It omits the URL from
// errors of net/http, because it contains the query.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return fault.Wrap(fault.Unavailable, err, "the search provider did not answer in time")
	}
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		return fault.Wrap(fault.Unavailable, err, "the search provider cannot be reached: "+why)
	}
	return fault.Wrap(fault.Unavailable, err, "the search provider cannot be reached")
}

// get returns a request with its parameters in the URL.
func (e *Engine) get(ctx context.Context, path string, params url.Values) (*http.Request, error) {
	u := e.base.JoinPath(path)
	u.RawQuery = params.Encode()
	return http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
}

// post returns a request with a JSON body and the key as a bearer token.
func (e *Engine) post(ctx context.Context, path string, body any) (*http.Request, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	u := e.base
	if path != "" {
		u = u.JoinPath(path)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	e.bearer(req)
	return req, nil
}

func (e *Engine) bearer(req *http.Request) {
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
}

// sites adds the filter's domains to a text as search operators.
func sites(text string, f *web.Filter) string {
	for _, d := range f.NotDomains {
		text += " -site:" + d
	}
	all := make([]string, len(f.Domains))
	for i, d := range f.Domains {
		all[i] = "site:" + d
	}
	if len(all) == 1 {
		return text + " " + all[0]
	}
	if len(all) > 1 {
		return text + " (" + strings.Join(all, " OR ") + ")"
	}
	return text
}

// when parses a date in the providers' formats; it returns the zero time for others.
func when(text string) time.Time {
	text = strings.TrimSpace(text)
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly, time.RFC1123, time.RFC1123Z} {
		if t, err := time.Parse(form, text); err == nil && t.Year() > 0 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Providers lists the names of the providers.
func Providers() []string {
	var all []string
	for name := range providers {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
