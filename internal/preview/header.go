package preview

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// rewrite makes the request for the server in the sandbox. It sees the host that
// the browser sees, so that what it says of itself, and what it checks of where
// requests come from, is right.
func (h *Handler) rewrite(p *httputil.ProxyRequest) {
	v := visitOf(p.In.Context())
	p.Out.URL = &url.URL{Scheme: "http", Host: upstream(v.record), Path: p.In.URL.Path, RawPath: p.In.URL.RawPath, RawQuery: p.In.URL.RawQuery, ForceQuery: p.In.URL.ForceQuery}
	p.Out.Host = p.In.Host
	for _, name := range []string{"X-Real-Ip", "X-Forwarded-Port", "X-Forwarded-Server"} {
		p.Out.Header.Del(name) // the others are left away with the hop
	}
	p.Out.Header.Set("X-Forwarded-For", h.cfg.Client(p.In))
	p.Out.Header.Set("X-Forwarded-Host", p.In.Host)
	p.Out.Header.Set("X-Forwarded-Proto", h.cfg.Previews.Base().scheme)
	if scheme, token, ok := strings.Cut(p.Out.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") && h.cfg.Key(strings.TrimSpace(token)) {
		p.Out.Header.Del("Authorization")
	}
	if _, ok := p.Out.Header["User-Agent"]; !ok {
		p.Out.Header["User-Agent"] = nil // none stays none
	}
}

// modify takes from an answer what would reach beyond its host.
func (h *Handler) modify(res *http.Response) error {
	header := res.Header
	header.Del("Alt-Svc")         // would lead browsers past this server
	header.Del("Clear-Site-Data") // means cookies of the whole registered domain
	for i, c := range header["Set-Cookie"] {
		header["Set-Cookie"][i] = hostOnly(c)
	}
	// The name is a secret, which pages must not tell others by linking to them.
	if header.Get("Referrer-Policy") == "" {
		header.Set("Referrer-Policy", "same-origin")
	}
	header.Set("X-Robots-Tag", "noindex, nofollow")
	if res.StatusCode == http.StatusSwitchingProtocols {
		upgrade(res, visitOf(res.Request.Context()).out)
	}
	return nil
}

// hostOnly takes the domain from a cookie, which then belongs to its host alone.
func hostOnly(cookie string) string {
	parts := strings.Split(cookie, ";")
	kept := parts[:1]
	for _, part := range parts[1:] {
		name, _, _ := strings.Cut(part, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "domain") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ";")
}
