package preview

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hop are headers of one connection, by their canonical names.
var hop = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// told are headers that a client cannot tell the server in the sandbox: this
// server does, or they are said otherwise.
var told = map[string]bool{
	"Host": true, "Content-Length": true, "Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
	"X-Forwarded-Port": true, "X-Forwarded-Server": true, "X-Real-Ip": true,
}

// own reports whether a header is not the client's to say, by whichever name: some
// servers take "_" for "-".
func own(name string) bool {
	if strings.Contains(name, "_") {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return hop[name] || told[name]
}

// newlines are no part of a value.
var newlines = strings.NewReplacer("\r", " ", "\n", " ")

// appendHead writes the first lines of a request to the server in the sandbox. It
// sees the host that the browser sees, so that what it says of itself, and what it
// checks of where requests come from, is right.
func (h *Handler) appendHead(b []byte, r *http.Request, upgrade string) []byte {
	field := func(name, value string) {
		b = append(append(b, name...), ": "...)
		if strings.ContainsAny(value, "\r\n") {
			value = newlines.Replace(value)
		}
		b = append(append(b, value...), "\r\n"...)
	}
	b = append(append(b, r.Method...), ' ')
	b = append(append(b, strings.ReplaceAll(r.URL.RequestURI(), " ", "%20")...), " HTTP/1.1\r\n"...)
	field("Host", r.Host)
	listed := listedIn(r.Header)
	for name, values := range r.Header {
		if own(name) || slices.Contains(listed, name) {
			continue
		}
		for _, value := range values {
			if name != "Authorization" || !h.isKey(value) {
				field(name, value)
			}
		}
	}
	if httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		field("Te", "trailers")
	}
	field("X-Forwarded-For", h.cfg.Client(r))
	field("X-Forwarded-Host", r.Host)
	field("X-Forwarded-Proto", h.cfg.Previews.Base().Scheme())
	if upgrade != "" {
		field("Connection", "Upgrade")
		field("Upgrade", upgrade)
	}
	switch {
	case r.ContentLength < 0:
		field("Transfer-Encoding", "chunked")
		for name := range r.Trailer {
			field("Trailer", name)
		}
	case r.ContentLength > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch:
		field("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	return append(b, "\r\n"...)
}

// isKey reports whether an Authorization has a key of the API.
func (h *Handler) isKey(value string) bool {
	scheme, token, ok := strings.Cut(strings.TrimSpace(value), " ")
	return ok && strings.EqualFold(scheme, "bearer") && h.cfg.Key(strings.TrimSpace(token))
}

// upgradeOf is what a header asks to switch to, "" for nothing.
func upgradeOf(header http.Header) string {
	if !httpguts.HeaderValuesContainsToken(header["Connection"], "upgrade") {
		return ""
	}
	return header.Get("Upgrade")
}

// listedIn are the headers that belong to the connection because it says so.
func listedIn(header http.Header) (names []string) {
	for _, value := range header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	return names
}

// copyAnswerHeader copies what of an answer's header is not for this connection, and
// would not reach beyond its host.
func copyAnswerHeader(to, from http.Header) {
	listed := listedIn(from)
	for name, values := range from {
		switch {
		case hop[name] || slices.Contains(listed, name):
		case name == "Alt-Svc": // would lead browsers past this server
		case name == "Clear-Site-Data": // means cookies of the whole registered domain
		case name == "Set-Cookie":
			for i, c := range values {
				values[i] = hostOnly(c)
			}
			to[name] = values
		default:
			to[name] = values
		}
	}
}

// copyHeader makes the header of the answer. It returns how many trailers it
// announces.
func (h *Handler) copyHeader(to http.Header, res *http.Response) int {
	copyAnswerHeader(to, res.Header)
	// The name is a secret, which pages must not tell others by linking to them.
	if to.Get("Referrer-Policy") == "" {
		to.Set("Referrer-Policy", "same-origin")
	}
	to.Set("X-Robots-Tag", "noindex, nofollow")
	for name := range res.Trailer {
		to.Add("Trailer", name)
	}
	return len(res.Trailer)
}

// copyTrailer adds what came behind the body.
func copyTrailer(out *answer, res *http.Response, announced int) {
	if len(res.Trailer) == 0 {
		return
	}
	_ = out.conn.Flush() // so that there can be a trailer
	trailer := http.Header{}
	copyAnswerHeader(trailer, res.Trailer)
	for name, values := range trailer {
		if len(res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		out.Header()[name] = values
	}
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
