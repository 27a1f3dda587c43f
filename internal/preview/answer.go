package preview

import (
	"bufio"
	"context"
	"html/template"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a client may leave a piece of its answer unread before
	// the connection is cut.
	patience = 2 * time.Minute
	// quiet is how long an upgraded connection may carry nothing.
	quiet = time.Hour
)

// answer counts what is written, and does not wait for ever for a client that
// does not read.
type answer struct {
	http.ResponseWriter
	conn    *http.ResponseController
	ctx     context.Context // of the request
	cut     func()          // ends it
	written atomic.Int64
}

func (a *answer) Write(p []byte) (int, error) {
	_ = a.conn.SetWriteDeadline(time.Now().Add(patience)) // those of tests have none
	n, err := a.ResponseWriter.Write(p)
	a.written.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController find the server's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Hijack takes the connection from the server, which then neither ends it nor
// waits for it: the end of the request does.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := a.conn.Hijack()
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(a.ctx, func() { conn.Close() })
	return client{conn}, buf, conn.SetDeadline(time.Time{})
}

// client is a connection that has left HTTP.
type client struct{ net.Conn }

func (c client) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// upgraded is the sandbox's side of it.
type upgraded struct {
	io.ReadWriteCloser
	out   *answer
	timer *time.Timer
}

// upgrade has the bytes counted of a connection that leaves HTTP, and cuts it when
// it carries nothing for long.
func upgrade(res *http.Response, out *answer) {
	if conn, ok := res.Body.(io.ReadWriteCloser); ok { // the proxy refuses what is not
		res.Body = &upgraded{conn, out, time.AfterFunc(quiet, out.cut)}
	}
}

func (u *upgraded) Read(p []byte) (int, error) {
	n, err := u.ReadWriteCloser.Read(p)
	u.out.written.Add(int64(n))
	u.timer.Reset(quiet)
	return n, err
}

func (u *upgraded) Write(p []byte) (int, error) {
	u.timer.Reset(quiet)
	return u.ReadWriteCloser.Write(p)
}

func (u *upgraded) Close() error {
	u.timer.Stop()
	return u.ReadWriteCloser.Close()
}

var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:34em;padding:0 1em;color:#333;background:#fff}h1{font-size:1.3em}</style>
<h1>{{.Title}}</h1><p>{{.Text}}</p></html>
`))

// page answers in our own words.
func (h *Handler) page(w *answer, r *http.Request, status int, text string) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n") // who has gone needs no answer
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(status)
	_ = page.Execute(w, struct{ Title, Text string }{http.StatusText(status), text})
}

// unknown answers for every host that is no preview, or is none any more.
func (h *Handler) unknown(w *answer, r *http.Request) {
	h.page(w, r, http.StatusNotFound, "There is nothing at this address. A preview that was closed, or whose sandbox is gone, has a new address when its port is opened again.")
}
