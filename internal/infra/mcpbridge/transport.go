package mcpbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// maxRefusal bounds what is read of a refusal, in bytes.
const maxRefusal = 64 << 10

// undone is why a message certainly had no effect.
type undone struct {
	error

	refused bool // by the server, which otherwise was not reached
}

func (u *undone) Unwrap() error { return u.error }

// bearer sends a key with every request, and tells requests that were not begun from those
// of which that is not known.
type bearer string

// RoundTrip implements http.RoundTripper. The error of a message is an undone one if no
// connection was made for it, or if the server refused it within a session. A session that
// is over is left to the SDK.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	r = r.Clone(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	r.Header.Set("Authorization", "Bearer "+string(b))
	r.Header.Set("X-Atoll-Max-Event", "0") // what the server lets a tool return is ours to pass on
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		if r.Method == http.MethodPost && !connected.Load() {
			return nil, &undone{error: err}
		}
		return nil, err
	}
	if r.Method != http.MethodPost || r.Header.Get("Mcp-Session-Id") == "" || res.StatusCode < 400 || res.StatusCode == http.StatusNotFound {
		return res, nil
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what cannot be read says nothing
	_ = res.Body.Close()
	said, ok := refusal(text)
	switch {
	case ok:
	case res.StatusCode < 500: // of a proxy
		said = res.Status
	default: // of a proxy that may have passed the message on
		return nil, fmt.Errorf("the answer is %s", res.Status)
	}
	if after := res.Header.Get("Retry-After"); after != "" {
		said += fmt.Sprintf(" (Retry-After: %.40s)", after)
	}
	return nil, &undone{errors.New(said), true}
}

// refusal reads an error of JSON-RPC.
func refusal(text []byte) (message string, ok bool) {
	var said struct {
		Version string `json:"jsonrpc"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &said) != nil || said.Version != "2.0" || said.Error.Message == "" {
		return "", false
	}
	return said.Error.Message, true
}
