package forward

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hop are headers of one connection, by their canonical names.
var hop = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// told are headers that a client cannot tell the server in the sandbox: this server
// does, or they are said otherwise. So are all that begin with forwarded.
var told = map[string]bool{
	"Host": true, "Content-Length": true, "Forwarded": true, "X-Forwarded": true, "X-Real-Ip": true,
}

const forwarded = "X-Forwarded-"

// dashed is the canonical name of a header as servers see it that take "_" for "-".
func dashed(name string) string {
	if strings.Contains(name, "_") {
		return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return name
}

// isTold reports whether a header is not the client's to say. The proxy has taken out
// those of one connection by their own names.
func isTold(name string) bool {
	as := dashed(name)
	return told[as] || strings.HasPrefix(as, forwarded) || as != name && hop[as]
}

// mayTrail reports whether a client may send a header behind its body; header is what
// was before the body.
func mayTrail(name string, header http.Header) bool {
	as := dashed(name)
	return httpguts.ValidTrailerHeader(as) && !hop[as] && !isTold(name) && !slices.Contains(listedIn(header), name)
}

// cleanRequest takes out of a request's header what its client cannot say.
func (p *Proxy) cleanRequest(header http.Header) {
	for name := range header {
		if isTold(name) {
			delete(header, name)
		}
	}
	for name, values := range header {
		if !slices.ContainsFunc(values, p.hasKey) {
			continue
		}
		if name == "Cookie" {
			values = p.cleanCookies(values)
		}
		if values = slices.DeleteFunc(slices.Clone(values), p.hasKey); len(values) == 0 {
			delete(header, name)
			continue
		}
		header[name] = values
	}
}

// hasKey reports whether a header's value has a key or token of the API, whichever header it is:
// clients of several APIs send theirs in several. The user and password of Basic count too.
func (p *Proxy) hasKey(value string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(value, isSeparator), func(part string) bool {
		if p.cfg.Key(part) {
			return true
		}
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if text, err := encoding.DecodeString(strings.TrimRight(part, "=")); err == nil && slices.ContainsFunc(strings.FieldsFunc(string(text), isSeparator), p.cfg.Key) {
				return true
			}
		}
		return false
	})
}

func isSeparator(r rune) bool { return strings.ContainsRune(" \t,;:=\"'", r) }

// cleanCookies takes the cookies with keys out of those of a request.
func (p *Proxy) cleanCookies(values []string) (out []string) {
	for _, value := range values {
		kept := slices.DeleteFunc(strings.Split(value, ";"), func(pair string) bool {
			_, text, _ := strings.Cut(pair, "=")
			return p.hasKey(text)
		})
		if len(kept) > 0 {
			out = append(out, strings.TrimSpace(strings.Join(kept, ";")))
		}
	}
	return out
}

// isWebSocket reports whether a request may be answered with a WebSocket, which is the
// only protocol that previews switch to.
func isWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && r.Body == nil && strings.EqualFold(upgradeOf(r.Header), "websocket")
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

// cleanAnswer takes out of an answer's header what is for this connection alone, and
// what would reach beyond its host.
func cleanAnswer(header http.Header) {
	for _, name := range listedIn(header) {
		delete(header, name)
	}
	for name, values := range header {
		switch {
		case hop[name],
			name == "Alt-Svc",         // would lead browsers past this server
			name == "Clear-Site-Data": // means cookies of the whole registered domain
			delete(header, name)
		case name == "Set-Cookie":
			for i, c := range values {
				values[i] = hostOnly(c)
			}
		}
	}
}

// cleanTrailer does the same for what comes behind an answer's body.
func cleanTrailer(trailer http.Header) {
	cleanAnswer(trailer)
	for name := range trailer {
		if name == "Set-Cookie" || !httpguts.ValidTrailerHeader(name) {
			delete(trailer, name)
		}
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
