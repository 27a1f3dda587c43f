package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Codes of refusals that JSON-RPC leaves to its applications. Other servers of the
// protocol have the same.
const (
	codeRefused   = -32000 // a key, a limit, a method of HTTP
	codeNoSession = -32001
)

// message is what is known of a request's message before the SDK reads it.
type message struct {
	isPost  bool
	isJSON  bool
	id      json.RawMessage // null of what asks for no answer, or cannot be read
	method  string
	version string // of the protocol, as the header has it
}

var null = json.RawMessage("null")

// readMessage looks at a request's message. What it is not is the SDK's to say.
func readMessage(r *http.Request, body []byte) *message {
	m := &message{isPost: r.Method == http.MethodPost, isJSON: json.Valid(body), id: null, version: r.Header.Get(versionHeader)}
	var read struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if !m.isPost || json.Unmarshal(body, &read) != nil {
		return m
	}
	m.method = read.Method
	if id := bytes.TrimSpace(read.ID); len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') {
		m.id = id
	}
	return m
}

// rpcError is a message of JSON-RPC that refuses another.
type rpcError struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcErrorObject  `json:"error"`
}

type rpcErrorObject struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// refusal is what the SDK refuses with a status and a line of text.
func (m *message) refusal(status int, said string) (int, *rpcError) {
	code, id := codeOf(status), m.id
	switch {
	case status == http.StatusNotFound: // of the session
		code, id = codeNoSession, null // clients of the SDK take the error of a message for that of a session that lives
	case status == http.StatusBadRequest && strings.Contains(said, "JSON RPC not handled"):
		code, said = jsonrpc.CodeMethodNotFound, "there is no method "+m.method
		if !bytes.Equal(m.id, null) {
			// An answer as every other. Before version 2026-07-28, 404 says that a session is over.
			status = http.StatusOK
		}
	case status == http.StatusBadRequest && m.isPost && !m.isJSON:
		code = jsonrpc.CodeParseError
	}
	return status, &rpcError{"2.0", id, rpcErrorObject{Code: code, Message: said}}
}

// codeOf is the code of a status that is not one of success.
func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return jsonrpc.CodeInvalidRequest
	case http.StatusInternalServerError:
		return jsonrpc.CodeInternalError
	}
	return codeRefused
}

// refused is an error that says which message it is of.
type refused struct {
	error

	id json.RawMessage
}

func (r *refused) Unwrap() error { return r.error }

// MessageID returns the id of the message, null if it has none.
func (r *refused) MessageID() jsontext.Value { return jsontext.Value(r.id) }
