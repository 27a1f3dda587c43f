package model

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Limits of a record.
const (
	MaxName     = 128
	MaxUpstream = 256
	MaxURL      = 2048
	MaxKey      = 8192
	MaxContext  = 100_000_000 // tokens
	MaxTenants  = 1000        // per model
	MaxPlans    = 100         // per model
)

// names matches model names, such as gpt-5, llama3.2:3b or acme/large.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*$`)

// ids matches model ids. A name must not look like one, because callers may pass either.
var ids = regexp.MustCompile(`^mdl_[0-9a-f]{16}$`)

// CanName reports whether a text is valid as a model id or name. Lookups skip other texts.
func CanName(idOrName string) bool { return len(idOrName) <= MaxName && names.MatchString(idOrName) }

// CheckName returns an error if name is not a valid model name.
func CheckName(name string) error {
	if !CanName(name) || ids.MatchString(name) {
		return invalid("name must have 1 to %d letters, digits, dots, underscores, hyphens, colons and slashes, have a letter or digit at the start and after each slash, and not look like an id", MaxName)
	}
	return nil
}

// CapabilitiesOf sorts capabilities into the order of Capabilities. It rejects unknown and
// duplicate ones.
func CapabilitiesOf(given []Capability) ([]Capability, error) {
	out := slices.DeleteFunc(slices.Clone(Capabilities), func(c Capability) bool { return !slices.Contains(given, c) })
	if len(out) != len(given) {
		return nil, invalid("capabilities must be from %s, without duplicates", join(Capabilities))
	}
	return out, nil
}

// Validate checks the record and returns its parsed base URL. It does not check where the URL
// leads. Errors begin with the field's name.
func (r *Record) Validate() (base *url.URL, err error) {
	if err := CheckName(r.Name); err != nil {
		return nil, err
	}
	switch {
	case r.Provider.Protocol() == nil:
		return nil, invalid("provider must be one of %s", join(Providers()))
	case r.Upstream == "" || len(r.Upstream) > MaxUpstream || strings.ContainsFunc(r.Upstream, unprintable):
		return nil, invalid("upstream must be 1 to %d bytes of visible characters", MaxUpstream)
	case r.Context < 0 || r.Context > MaxContext:
		return nil, invalid("context must be 0, for unknown, to %d tokens", MaxContext)
	case r.MaxOutput < 0 || r.MaxOutput > MaxContext:
		return nil, invalid("max_output must be 0, for unknown, to %d tokens", MaxContext)
	}
	if err := checkKey(r.Key); err != nil {
		return nil, err
	}
	for _, p := range []Price{r.Prices.Input, r.Prices.Output, r.Prices.CacheRead, r.Prices.CacheWrite} {
		if p < 0 || p > MaxPrice {
			return nil, invalid("prices must be 0 to %s US dollars per million tokens", MaxPrice)
		}
	}
	if r.BaseURL == "" {
		return nil, invalid("base_url is required: the provider %s has no default service", r.Provider)
	}
	base, err = url.Parse(r.BaseURL)
	if err != nil || len(r.BaseURL) > MaxURL || base.Scheme != "https" && base.Scheme != "http" || base.Hostname() == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" || strings.ContainsFunc(r.BaseURL, unprintable) {
		return nil, invalid("base_url must be an http or https URL of at most %d bytes with a host, and without user, query and fragment", MaxURL)
	}
	return base, nil
}

func checkKey(key string) error {
	if len(key) > MaxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return invalid("key must be at most %d visible ASCII characters without spaces", MaxKey)
	}
	return nil
}

func unprintable(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }
