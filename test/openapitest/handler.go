package openapitest

import (
	"net/http"
)

// Serve has a handler answer a request, and returns where its answer contradicts the
// document.
func Serve(h http.Handler, w http.ResponseWriter, r *http.Request) error {
	out := &writer{ResponseWriter: w, r: r}
	h.ServeHTTP(out, r)
	if out.a == nil {
		return out.err
	}
	if out.err != nil {
		return out.err
	}
	return out.a.Close()
}

// writer is an answer that is checked while it is written.
type writer struct {
	http.ResponseWriter
	r   *http.Request
	a   *Answer // nil before the head is written
	err error
}

func (w *writer) WriteHeader(status int) {
	if w.a == nil && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.a, w.err = NewAnswer(w.r, status, w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if w.a == nil {
		w.a, w.err = NewAnswer(w.r, http.StatusOK, w.Header())
	}
	if w.err == nil {
		_, w.err = w.a.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
