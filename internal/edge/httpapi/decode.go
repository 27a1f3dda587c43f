package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// MaxBody is the largest request body in bytes: code and variables of the
// largest size, every byte of them written as a \u escape, fit.
const MaxBody = 8 << 20

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// checkContentType refuses what is not plain JSON in UTF-8.
func checkContentType(h http.Header) error {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.New(fault.Unsupported, "Content-Encoding must not be set: send the body as it is")
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" || len(h.Values("Content-Type")) > 1 {
		return fault.New(fault.Unsupported, "Content-Type must be application/json")
	}
	if cs, ok := params["charset"]; ok && !strings.EqualFold(cs, "utf-8") {
		return fault.New(fault.Unsupported, "Content-Type must be application/json in UTF-8")
	}
	return nil
}

// readRequest reads the body of a request that is JSON and has no query.
func readRequest(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if _, err := parseQuery(r); err != nil {
		return nil, err
	}
	return readJSON(w, r)
}

// readJSON reads the body of a request that is JSON.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := checkContentType(r.Header); err != nil {
		return nil, err
	}
	return readBody(w, r)
}

// maxSwallowed is how much is taken of a body that is too large, for nothing:
// many clients read no answer before they have sent everything.
const maxSwallowed = 64 << 20

// readBody reads a whole request body within MaxBody and bodyTimeout.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := fault.New(fault.TooLarge, "the request body must be at most %d bytes", MaxBody)
	expects := r.Header.Get("Expect") != "" // and so waits for our word before it sends
	if r.ContentLength > MaxBody && expects {
		return nil, tooLarge
	}
	// Not every ResponseWriter has deadlines (those of tests do not); the
	// server's own does.
	conn := http.NewResponseController(w)
	if conn.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
		defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	}
	if r.ContentLength > MaxBody {
		_, _ = io.CopyN(io.Discard, r.Body, maxSwallowed) // the answer is the same
		return nil, tooLarge
	}
	var buf bytes.Buffer
	buf.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead) // ReadFrom wants room beyond the end
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return buf.Bytes(), nil
	case errors.As(err, &over):
		_, _ = io.CopyN(io.Discard, r.Body, maxSwallowed)
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &protocolError{http.StatusRequestTimeout, "request_timeout", fmt.Sprintf("the request body did not arrive within %s", bodyTimeout)}
	default:
		return nil, fault.Wrap(fault.Invalid, err, "the request body ended early")
	}
}

// decodeExecute reads body strictly. Every failure is a *fault.Error that names
// the field.
func decodeExecute(body []byte) (*ExecuteRequest, error) {
	var in ExecuteRequest
	if err := wire.Body.Decode(body, &in); err != nil {
		return nil, err
	}
	if in.ThreadID != nil && *in.ThreadID == "" {
		return nil, invalid("thread_id must not be empty; leave it out for a home that does not outlive the execution")
	}
	if in.Code == nil {
		return nil, invalid("code is required")
	}
	return &in, nil
}

// request gives the domain's form, with what the caller has left out.
func (in *ExecuteRequest) request(policy execution.Policy) (_ execution.Request, err error) {
	req := execution.Request{
		Code:     *in.Code,
		Language: execution.Languages[0],
		Timeout:  policy.DefaultTimeout(),
		Env:      wire.StringMap(in.EnvVars),
		Metadata: wire.StringMap(in.Metadata),
	}
	if in.ThreadID != nil {
		req.Thread = string(*in.ThreadID)
	}
	if in.Language != nil {
		req.Language = execution.Language(*in.Language)
	}
	if in.Timeout != nil {
		req.Timeout = in.Timeout.Duration()
	}
	req.SubPaths, err = subPaths(in.SubPaths)
	return req, err
}

func subPaths(in []Text) ([]storage.SubPath, error) {
	return storage.ParseSubPaths(wire.Strings(in))
}

// decodeRequest decodes the body of a request that has no query.
func decodeRequest(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readRequest(w, r)
	if err != nil {
		return err
	}
	return wire.Body.Decode(body, into)
}

// decodeJSON decodes the body of a request.
func decodeJSON(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	return wire.Body.Decode(body, into)
}

// noBody refuses a body where all that can be asked for is in the URL: what it asks
// for would be passed over. {} asks for nothing.
func noBody(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the request body cannot be read")
	}
	if text := strings.TrimSpace(string(body)); text != "" && text != "{}" {
		return invalid("%s %s takes no body; its parameters belong in the query of the URL", r.Method, r.Pattern)
	}
	return nil
}
