package preview

import (
	"encoding/base32"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Base is the URL pattern of previews, such as http://*.localhost:8080. The "*" in the host stands
// for a preview's label.
type Base struct {
	scheme string
	domain string // without the label and its dot, in lower case
	port   string // with its colon; "" for the scheme's own
}

// ParseBase parses a Base.
func ParseBase(text string) (Base, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "" || u.User != nil ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return Base{}, errors.New("want a URL that ends after its host, such as https://*.preview.example.com")
	}
	domain, ok := strings.CutPrefix(strings.ToLower(u.Hostname()), "*.")
	if !ok || !domainPattern.MatchString(domain) || len(domain) > 253-1-maxLabel {
		return Base{}, errors.New("its host must be *. and a domain, such as https://*.preview.example.com")
	}
	b := Base{scheme: u.Scheme, domain: domain}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return Base{}, fmt.Errorf("%q is not a port", p)
		}
		b.port = ":" + p
	}
	return b, nil
}

var domainPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// URL returns the URL of a label.
func (b Base) URL(label string) string {
	return b.scheme + "://" + label + "." + b.domain + b.port + "/"
}

// Label extracts the label from a request's host. ok is false for a host outside the domain. Label
// returns "" for a subdomain that is not a valid label. The domain itself counts as a preview host
// unless it is localhost.
func (b Base) Label(host string) (label string, ok bool) {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	if len(host) > 254 {
		return "", false
	}
	host = strings.ToLower(host)
	if host == b.domain {
		return "", b.domain != "localhost"
	}
	label, ok = strings.CutSuffix(host, "."+b.domain)
	if !ok || !labelPattern.MatchString(label) && !everyPattern.MatchString(label) {
		return "", ok
	}
	return label, true
}

// A label is the port, the sandbox's id without its prefix, and a token of 128
// bits: at most 5, 16 and 26 characters. One of Every has the id with its prefix.
const maxLabel = 52

const idPrefix = "sb-"

var (
	labelPattern = regexp.MustCompile(`^[1-9][0-9]{0,4}-[0-9a-f]{16}-[a-z2-7]{26}$`)
	encoding     = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

func makeLabel(port uint16, id runtime.ID, token []byte) string {
	return strconv.Itoa(int(port)) + "-" + strings.TrimPrefix(string(id), idPrefix) + "-" + encoding.EncodeToString(token)
}

// Domain returns the part after a label and its dot, including the port if the base has one.
func (b Base) Domain() string { return b.domain + b.port }

// Scheme returns "http" or "https".
func (b Base) Scheme() string { return b.scheme }
