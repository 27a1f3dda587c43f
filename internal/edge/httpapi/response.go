package httpapi

import (
	"errors"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// WriteJSON answers with body. Bytes in strings that are not UTF-8 become U+FFFD, one
// each.
func WriteJSON(w http.ResponseWriter, status int, body any) error {
	StartJSON(w, status)
	return json.MarshalWrite(w, body, jsontext.AllowInvalidUTF8(true))
}

// StartJSON writes the head of an answer in JSON.
func StartJSON(w http.ResponseWriter, status int) { start(w, status, "application/json") }

// Start writes the head of an answer of success that is no JSON.
func (c *Call) Start(media string) { start(c.W, http.StatusOK, media) }

func start(w http.ResponseWriter, status int, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// patience is how long a client may leave a piece of its answer unread, or a piece of its
// body unsent, before the connection is cut.
const patience = time.Minute

// Patience is how long a client of a terminal may leave a message unread.
const Patience = patience

// response remembers what was answered, and cuts a client off that does not read.
type response struct {
	http.ResponseWriter
	conn   *http.ResponseController
	status int       // 0 until the headers are written
	until  time.Time // the deadline of writes
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	// Moving a deadline costs; one that is a second old is as good.
	if until := time.Now().Add(patience); until.Sub(w.until) > time.Second {
		w.until = until
		// The server's own writer has deadlines; those of tests need none.
		_ = w.conn.SetWriteDeadline(until)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unread reports whether an answer broke off because its client has closed the
// connection.
func unread(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "write" && op.Net == "tcp" && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// Accepts reports whether the client names media as acceptable. Wildcards do not count:
// what is not named gets the default.
func Accepts(h http.Header, media string) bool {
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

// PrefersAsync reports whether the client asks for 202 instead of what takes long.
func PrefersAsync(h http.Header) bool {
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
