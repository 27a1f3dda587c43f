package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// AnyOrigin in place of the origins of Config.CORS lets pages of all origins call.
const AnyOrigin = "*"

// What pages may send and read. Credentials are never among it: browsers then send no cookies
// and keep no key, so that a page has what it was given and nothing else.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Prefer, Range, X-Client-Id"
	corsAge     = "600" // seconds for which a browser may keep the answer of a preflight
)

// corsExposed are the headers of answers that pages can read.
var corsExposed = strings.Join([]string{
	TraceHeader, ReplayedHeader, "Retry-After", "Location", "Preference-Applied", "Content-Range", "Content-Disposition",
	"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
	"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens",
}, ", ")

// CheckOrigins refuses what is neither a list of web origins nor AnyOrigin alone.
func CheckOrigins(origins []string) error {
	if len(origins) == 1 && origins[0] == AnyOrigin {
		return nil
	}
	for _, o := range origins {
		if o == AnyOrigin {
			return Invalid("%q stands alone: it has all others", AnyOrigin)
		}
		if err := tenant.CheckOrigin(o); err != nil {
			return err
		}
	}
	return nil
}

// SetOrigins replaces Config.CORS while the server runs.
func (s *Server) SetOrigins(origins []string) error {
	if err := CheckOrigins(origins); err != nil {
		return err
	}
	s.origins.Store(&origins)
	return nil
}

// crossOrigin lets pages of some origins call what is below /v1 but for /v1/admin, which no
// page's caller may use.
func crossOrigin(now func() []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origins := now()
		all := slices.Contains(origins, AnyOrigin)
		if len(origins) == 0 || !strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v1/admin/") {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		given := r.Header.Values("Origin")
		if len(given) != 1 || !all && !slices.Contains(origins, given[0]) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", given[0])
		if all {
			h.Set("Access-Control-Allow-Origin", AnyOrigin)
		}
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", corsMethods)
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", corsAge)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", corsExposed)
		next.ServeHTTP(w, r)
	})
}
