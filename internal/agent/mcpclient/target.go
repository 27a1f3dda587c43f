package mcpclient

import (
	"context"
	"maps"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// Limits of a Target.
const (
	maxURL     = 2048 // bytes
	maxHeaders = 32
	maxHeader  = 8 << 10 // bytes of a value
)

// minSecret is the minimum length, in bytes, of a header value that cover redacts. Shorter
// values are words, such as true.
const minSecret = 8

// Target is a server and the headers of its requests.
type Target struct {
	URL     string
	Headers map[string]string `json:",omitempty"`
	// Command is set if the server is a program; URL and Headers are then empty.
	Command *Command `json:",omitempty"`
}

// reserved headers are the protocol's, and HTTP's own.
var reserved = map[string]bool{
	"accept": true, "connection": true, "content-length": true, "content-type": true, "host": true, "last-event-id": true,
	"proxy-authorization": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
}

func (t Target) equal(other Target) bool {
	return t.URL == other.URL && maps.Equal(t.Headers, other.Headers) && t.Command.equal(other.Command)
}

// With returns the target with a vault's token, which replaces its own Authorization header. An
// empty token changes nothing.
func (t Target) With(token string) Target {
	if token == "" {
		return t
	}
	headers := map[string]string{"Authorization": "Bearer " + token}
	for name, value := range t.Headers {
		if !strings.EqualFold(name, "Authorization") {
			headers[name] = value
		}
	}
	return Target{URL: t.URL, Headers: headers}
}

// Check rejects a server that the client may not call. field prefixes the names in errors.
func (c *Client) Check(ctx context.Context, field string, t Target) error {
	if t.Command != nil {
		if c.starter == nil {
			return fault.New(fault.Invalid, "%s.command: this server does not start programs", field)
		}
		return nil
	}
	if len(t.Headers) > maxHeaders {
		return fault.New(fault.Invalid, "%s.headers must have at most %d", field, maxHeaders)
	}
	for name, value := range t.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || len(name) > 256 || len(value) > maxHeader {
			return fault.New(fault.Invalid, "%s.headers must have names of HTTP headers, and values of at most %d bytes without line breaks", field, maxHeader)
		}
		if low := strings.ToLower(name); reserved[low] || strings.HasPrefix(low, "mcp-") {
			return fault.New(fault.Invalid, "%s.headers must not set %s, which the server sets", field, low)
		}
	}
	return c.CheckURL(ctx, field+".server_url", t.URL)
}

// CheckURL rejects a URL that the client may not call. field names the URL in errors.
func (c *Client) CheckURL(ctx context.Context, field, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL || u.Host == "" || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http":
		return fault.New(fault.Invalid, "%s must be an https URL of at most %d bytes", field, maxURL)
	case u.User != nil || u.Fragment != "":
		return fault.New(fault.Invalid, "%s must not have a user name, a password or a fragment", field)
	case u.Scheme != "https" && !c.allow.Opens(ctx, u.Hostname()):
		return fault.New(fault.Invalid, "%s must begin with https://; the operator can allow plain HTTP to a host with mcp_allow, or with --dev to this machine for the tenant dev", field)
	}
	return c.allow.Check(ctx, nil, field, u.Hostname())
}

// Origin returns the URL with its path and query redacted, because they may contain a key.
func (t Target) Origin() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	origin := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		origin += "/<redacted>"
	}
	return origin
}

// Host returns the host of the server, for audit rows.
func (t Target) Host() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// cover returns a replacer that redacts the target's secrets in texts.
func (t Target) cover() *strings.Replacer {
	var pairs []string
	add := func(secret string) {
		if len(secret) < minSecret {
			return
		}
		for _, text := range redact.Escaped(secret) { // servers put JSON into texts
			pairs = append(pairs, text, "[covered]")
		}
	}
	for _, value := range t.Headers {
		add(value)
		if _, token, ok := strings.Cut(value, " "); ok { // as in Bearer and Basic
			add(token)
		}
	}
	if t.Command != nil {
		for _, value := range t.Command.Env {
			add(value)
		}
	}
	if u, err := url.Parse(t.URL); err == nil {
		add(u.RawQuery)
		for _, values := range u.Query() {
			for _, value := range values {
				add(value)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}
