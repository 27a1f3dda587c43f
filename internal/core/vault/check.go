package vault

import (
	"net"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Bounds of vaults.
const (
	MaxCredentials = 20   // of a vault that are in use
	MaxAll         = 1000 // of a vault, also those that are archived
	MaxOfSession   = 10   // vaults
	MaxName        = 255  // characters
	MaxMetadata    = 16   // pairs
	MaxKey         = 64   // characters
	MaxValue       = 512  // characters
	MaxURL         = 2048 // bytes
	MaxText        = 1024 // bytes of a client's id, a scope and a resource
	MaxToken       = 7 << 10
	MinSecret      = tenant.MinSecret
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Check refuses what cannot be said of a vault or, unless named, of a credential.
func (a *About) Check(named bool) error {
	n := utf8.RuneCountInString(a.Name)
	switch {
	case named && strings.TrimSpace(a.Name) == "" || n > MaxName || strings.ContainsRune(a.Name, 0):
		return invalid("display_name must have 1 to %d characters, and no NUL", MaxName)
	case len(a.Metadata) > MaxMetadata:
		return invalid("metadata must have at most %d pairs", MaxMetadata)
	}
	for key, value := range a.Metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > MaxKey || utf8.RuneCountInString(value) > MaxValue {
			return invalid("metadata must have keys of 1 to %d characters, and values of at most %d", MaxKey, MaxValue)
		}
	}
	return nil
}

// Check refuses a credential that cannot be used, by the path of what is wrong. It binds the
// secret of a host to its hosts. fresh says that its times are new.
func (c *Credential) Check(s *Secret, fresh bool) error {
	if err := c.About.Check(false); err != nil {
		return err
	}
	if c.Kind == HostSecret {
		return c.checkHost(s)
	}
	if err := CheckURL("auth.mcp_server_url", c.Auth.ServerURL); err != nil {
		return err
	}
	name := "auth.token"
	if c.Kind == MCPOAuth {
		name = "auth.access_token"
	}
	if err := checkToken(name, s.Value); err != nil {
		return err
	}
	if fresh && !c.Auth.ExpiresAt.IsZero() && !c.Auth.ExpiresAt.After(time.Now()) {
		return invalid("auth.expires_at must be in the future")
	}
	if c.Auth.Refresh == nil {
		return nil
	}
	return c.Auth.Refresh.check(s)
}

func (c *Credential) checkHost(s *Secret) error {
	if len(c.Auth.Binding.Hosts) == 0 {
		return invalid("auth.hosts must name the hosts that the secret is sent to")
	}
	b, err := tenant.Bind(c.Auth.Variable, s.Value, c.Auth.Binding)
	c.Auth.Binding = b
	return err
}

func (r *Refresh) check(s *Secret) error {
	const path = "auth.refresh"
	if err := CheckURL(path+".token_endpoint", r.Endpoint); err != nil {
		return err
	}
	for _, f := range []struct {
		name, text string
		required   bool
	}{{"client_id", r.ClientID, true}, {"scope", r.Scope, false}, {"resource", r.Resource, false}} {
		if f.required && f.text == "" || len(f.text) > MaxText || !printable(f.text) {
			return invalid("%s.%s must be printable ASCII of at most %d bytes", path, f.name, MaxText)
		}
	}
	if err := checkToken(path+".refresh_token", s.RefreshToken); err != nil {
		return err
	}
	switch r.EndpointAuth {
	case AuthNone:
		if s.ClientSecret != "" {
			return invalid("%s.token_endpoint_auth.client_secret must be omitted with the type none", path)
		}
		return nil
	case AuthBasic, AuthPost:
		return checkToken(path+".token_endpoint_auth.client_secret", s.ClientSecret)
	}
	return invalid("%s.token_endpoint_auth.type must be none, client_secret_basic or client_secret_post", path)
}

// checkToken refuses what cannot be sent in a header, or not be told from ordinary output.
func checkToken(path, token string) error {
	if len(token) < MinSecret || len(token) > MaxToken || !printable(token) || strings.Contains(token, " ") {
		return invalid("%s must be printable ASCII without spaces, of %d to %d bytes", path, MinSecret, MaxToken)
	}
	return nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

// CheckURL refuses what is no plain http or https URL.
func CheckURL(path, text string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > MaxURL || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" || !printable(text) {
		return invalid("%s must be an https URL of at most %d bytes, without a user name and a fragment", path, MaxURL)
	}
	return nil
}

// ServerIdentity is the same for all ways to write the URL of one MCP server: scheme and host
// in small letters, without the port that goes without saying and a last slash in the path.
// The rest of the path and the query are compared as they are: a host that serves several
// parties tells them apart by the path that it is sent, dots and empty segments included.
func ServerIdentity(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", invalid("it is not the URL of a server")
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if port := u.Port(); port != "" && (scheme != "https" || port != "443") && (scheme != "http" || port != "80") {
		host = net.JoinHostPort(host, port)
	}
	out := "server/" + scheme + "://" + host + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out, nil
}
