package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// MaxBody is the largest request body in bytes: code and variables of the
// largest size, every byte of them written as a \u escape, fit.
const MaxBody = 8 << 20

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

// expects says what a field must be, for the message when it is not.
var expects = map[string]string{
	"code":     "a string",
	"language": "a string",
	"timeout":  "an integer, in seconds",
	"env_vars": "an object whose values are strings",
	"metadata": "an object whose values are strings",

	"webhook_url": "a string",
	"sub_paths":   "an array of strings",
	"thread_id":   "a string",
}

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
	if err := decodeStrict(body, &in); err != nil {
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
		Env:      plain(in.EnvVars),
		Metadata: plain(in.Metadata),
	}
	if in.ThreadID != nil {
		req.Thread = string(*in.ThreadID)
	}
	if in.Language != nil {
		req.Language = execution.Language(*in.Language)
	}
	if in.Timeout != nil {
		req.Timeout = time.Duration(in.Timeout.clamped()) * time.Second
	}
	req.SubPaths, err = subPaths(in.SubPaths)
	return req, err
}

func subPaths(in []Text) ([]storage.SubPath, error) {
	entries := make([]string, len(in))
	for i, entry := range in {
		entries[i] = string(entry)
	}
	return storage.ParseSubPaths(entries)
}

// plain gives a wire map the domain's type.
func plain(in map[string]Text) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}

// decodeRequest decodes the body of a request that has no query.
func decodeRequest(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readRequest(w, r)
	if err != nil {
		return err
	}
	return decodeStrict(body, into)
}

// decodeJSON decodes the body of a request.
func decodeJSON(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	return decodeStrict(body, into)
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

// wanted says what a field of a type must be; "" where that does not tell.
func wanted(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d, in digits", uint64(1)<<t.Bits()-1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "a whole number, in digits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return ""
}

// decodeStrict reads one JSON object: no unknown or repeated names, no
// invalid UTF-8, nothing after it.
func decodeStrict(body []byte, into any) error {
	if !utf8.Valid(body) {
		return invalid("the request body must be valid UTF-8")
	}
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return invalid("the request body is empty: send a JSON object")
	}
	if trimmed[0] != '{' && jsontext.Value(trimmed).IsValid() {
		return invalid("the request body must be a JSON object")
	}
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		path := strings.ReplaceAll(strings.TrimPrefix(string(s.JSONPointer), "/"), "/", ".")
		field, _, _ := strings.Cut(path, ".")
		switch {
		case errors.Is(s.Err, json.ErrUnknownName):
			return invalid("unknown field %s", quoteName(s.JSONPointer.LastToken()))
		case expects[field] != "":
			return invalid("%s must be %s", field, expects[field])
		case path != "" && len(path) < 60 && wanted(s.GoType) != "": // the names of a map are the caller's
			return invalid("%s must be %s", path, wanted(s.GoType))
		}
		return fault.Wrap(fault.Invalid, err, "the request body has the wrong shape")
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		switch {
		case errors.Is(s.Err, jsontext.ErrDuplicateName):
			return invalid("duplicate field %s", quoteName(s.JSONPointer.LastToken()))
		case errors.Is(s.Err, io.ErrUnexpectedEOF):
			return invalid("the request body is not valid JSON: it ends in the middle of a value")
		}
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the request body is not valid JSON (at byte %d)", s.ByteOffset))
	}
	return fault.Wrap(fault.Invalid, err, "the request body is not valid JSON")
}

// quoteName quotes a name from the caller, cut so that it cannot flood the
// message.
func quoteName(name string) string {
	const most = 60
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
