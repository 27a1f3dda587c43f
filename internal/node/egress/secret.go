package egress

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
)

// Secret is a value that a sandbox does not have. It has a placeholder, in whose
// place the value is put in requests to the hosts that the secret is for, made
// by HTTPS: in values of headers, user and password of basic authentication
// included, and in the query.
type Secret struct {
	Placeholder string   // 16 to 256 letters, digits, '-' and '_'
	Value       string   // printable ASCII
	Hosts       []string // names, as in sandbox.NetworkPolicy.AllowedHosts, but no "*"
}

// bound is a Secret that is ready to be used.
type bound struct {
	Secret
	hosts *rules.Policy
}

var (
	placeholder = regexp.MustCompile(`^[A-Za-z0-9_-]{16,256}$`)
	sendable    = regexp.MustCompile(`^[ -~]+$`)
)

// SetSecrets replaces the secrets that the sandbox's requests are given. They
// are used by connections made from now on.
func (s *Stack) SetSecrets(list []Secret) error {
	var all []bound
	for _, secret := range list {
		switch {
		case !placeholder.MatchString(secret.Placeholder):
			return fault.New(fault.Invalid, "the placeholder of a secret is 16 to 256 letters, digits, '-' and '_'")
		case !sendable.MatchString(secret.Value):
			return fault.New(fault.Invalid, "a secret that is bound to hosts must be printable ASCII in one line, since it is sent in headers")
		case len(secret.Hosts) == 0:
			return fault.New(fault.Invalid, "a bound secret needs the hosts that it is for")
		case s.cfg.Authority == nil:
			return fault.New(fault.Invalid, "secrets cannot be bound to hosts: this server has no certificate authority")
		}
		for _, h := range secret.Hosts {
			if h == "*" {
				return fault.New(fault.Invalid, "a bound secret needs the names of its hosts; \"*\" would give it to every host")
			}
		}
		hosts, err := rules.Compile(runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: secret.Hosts})
		if err != nil {
			return err
		}
		all = append(all, bound{secret, hosts})
	}
	s.secrets.Store(&all)
	return nil
}

// secretsFor returns the secrets that requests to a name are given.
func (s *Stack) secretsFor(name string) *strings.Replacer {
	list := s.secrets.Load()
	if list == nil || name == "" {
		return nil
	}
	var pairs []string
	for _, b := range *list {
		if b.hosts.Host(name) {
			pairs = append(pairs, b.Placeholder, b.Value)
		}
	}
	if pairs == nil {
		return nil
	}
	return strings.NewReplacer(pairs...)
}

// hasSecrets reports whether connections must be looked into that need no name.
func (s *Stack) hasSecrets() bool {
	list := s.secrets.Load()
	return list != nil && len(*list) > 0
}

// reveal puts secrets into a request in the place of their placeholders.
func reveal(r *http.Request, secrets *strings.Replacer) {
	for _, values := range r.Header {
		for i, v := range values {
			values[i] = revealHeader(v, secrets)
		}
	}
	if q := r.URL.RawQuery; q != "" {
		parts := strings.Split(q, "&")
		for i, p := range parts {
			k, v, ok := strings.Cut(p, "=")
			if value, err := url.QueryUnescape(v); ok && err == nil {
				if with := secrets.Replace(value); with != value {
					parts[i] = k + "=" + url.QueryEscape(with)
				}
			}
		}
		r.URL.RawQuery = strings.Join(parts, "&")
	}
}

func revealHeader(v string, secrets *strings.Replacer) string {
	const basic = "basic "
	if len(v) > len(basic) && strings.EqualFold(v[:len(basic)], basic) {
		if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(v[len(basic):])); err == nil {
			if with := secrets.Replace(string(plain)); with != string(plain) {
				return v[:len(basic)] + base64.StdEncoding.EncodeToString([]byte(with))
			}
		}
	}
	return secrets.Replace(v)
}
