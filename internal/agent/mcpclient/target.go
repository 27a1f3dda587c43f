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

// Bounds of a Target.
const (
	maxURL     = 2048 // bytes
	maxHeaders = 32
	maxHeader  = 8 << 10 // bytes of a value
)

// minSecret is how many bytes a header's value has that is kept out of texts: shorter ones
// are words, such as true.
const minSecret = 8

// Target is a server, and what it is asked with.
type Target struct {
	URL     string
	Headers map[string]string `json:",omitempty"`
	// Command is there for a server that is a program: it has no URL and no headers.
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

// With is the target with a token of a vault, which comes before a header of its own; without
// one it is as it was.
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

// Check says why a server may not be asked. field begins the names of what is wrong.
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

// CheckURL says why a URL, which field has, may not be asked.
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

// Origin is as much of the URL as may be shown: what follows may have a key in it.
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

// Host is the host of a server, for audit rows.
func (t Target) Host() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// cover returns what takes the secrets of a target out of texts.
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
