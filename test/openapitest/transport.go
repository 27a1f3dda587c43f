package openapitest

import (
	"errors"
	"io"
	"net/http"
)

// Transport has each answer of a server checked. A request whose answer contradicts the
// document fails: at once if its head does, else where its body is read.
type Transport struct{ Base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	a, err := NewAnswer(r, res.StatusCode, res.Header)
	if err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	if a.media != "" {
		res.Body = &body{res.Body, a}
	}
	return res, nil
}

// CloseIdleConnections is what an http.Client asks of its transport.
func (t Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// body is one that is checked while it is read.
type body struct {
	io.ReadCloser
	a *Answer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if _, wrong := b.a.Write(p[:n]); wrong != nil {
		return n, wrong
	}
	if err == io.EOF {
		if wrong := b.a.Close(); wrong != nil {
			return n, wrong
		}
	}
	return n, err
}
