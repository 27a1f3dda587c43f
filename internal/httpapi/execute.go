package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/execution"
)

const ndjson = "application/x-ndjson"

// postExecute runs code and answers when it has ended, or streams its output
// to a client that asks for NDJSON.
func (s *Server) postExecute(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authenticate(r)
	if err != nil {
		return err
	}
	if err := checkContentType(r.Header); err != nil {
		return err
	}
	if prefersAsync(r.Header) {
		return invalid("webhook delivery (Prefer: respond-async) is not available in this version")
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, err := decodeExecute(body, caller.Policy)
	if err != nil {
		return err
	}
	req.TraceID = traceOf(w)
	if accepts(r.Header, ndjson) {
		return s.streamExecute(w, r, req)
	}

	e, err := s.execute(r.Context(), req, nil)
	if err != nil {
		return err
	}
	out := toWire(e, req)
	if e.Status == execution.Timeout {
		late := TimeoutResponse{ExecuteResponse: out, Message: *out.Error, Code: codeTimeout}
		startJSON(w, http.StatusGatewayTimeout)
		return writeResult(w, &late, &late.ExecuteResponse)
	}
	startJSON(w, http.StatusOK)
	return writeResult(w, &out, &out)
}

// prefersAsync reports whether the client asked for 202 and a webhook.
func prefersAsync(h http.Header) bool {
	for _, line := range h.Values("Prefer") {
		for pref := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(pref, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// accepts reports whether the client names media as acceptable. Wildcards do
// not count: what is not named gets the default.
func accepts(h http.Header, media string) bool {
	for _, line := range h.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			name, params, err := mime.ParseMediaType(part)
			if err != nil || name != media {
				continue
			}
			if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}
