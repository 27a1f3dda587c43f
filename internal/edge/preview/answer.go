package preview

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a client may leave a piece of its answer unread before
	// the connection is cut.
	patience = 2 * time.Minute
	// quiet is how long an upgraded connection may carry nothing.
	quiet = time.Hour
	// room is how many bytes the server surely takes without waiting for the client.
	room = 1 << 10
)

// answer counts what is written, sends it when nothing more is at hand, and does
// not wait for ever for a client that does not read. One goroutine uses it.
type answer struct {
	http.ResponseWriter
	conn    *http.ResponseController
	ctx     context.Context // of the request
	cut     func()          // ends it
	written atomic.Int64    // of the body
	unsent  bool            // something may be in the server's buffers
	there   int             // bytes of the body in them
	until   time.Time       // when the client's time is over; zero before it matters
	left    bool            // the connection has left HTTP
}

func (a *answer) WriteHeader(status int) {
	a.unsent = true
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.unsent = true
	if a.there += len(p); a.there > room {
		a.wait()
	}
	n, err := a.ResponseWriter.Write(p)
	a.written.Add(int64(n))
	return n, err
}

// flush sends what was written.
func (a *answer) flush() error {
	if !a.unsent {
		return nil
	}
	a.unsent, a.there = false, 0
	a.wait()
	return a.conn.Flush()
}

// wait gives the client its time.
func (a *answer) wait() {
	if now := time.Now(); a.until.Sub(now) < patience/2 {
		a.until = now.Add(patience)
		_ = a.conn.SetWriteDeadline(a.until) // those of tests have none
	}
}

// end lets what else comes on the connection take its own time.
func (a *answer) end() {
	if a.left || a.until.IsZero() {
		return
	}
	_ = a.flush() // whether or not it is still there
	_ = a.conn.SetWriteDeadline(time.Time{})
}

// Unwrap lets http.ResponseController find the server's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// leave takes the connection from the server, which then neither ends it nor
// waits for it: the end of the request does.
func (a *answer) leave() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := a.conn.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.left = true
	context.AfterFunc(a.ctx, func() { conn.Close() })
	return conn, buf, conn.SetDeadline(time.Time{})
}

// switched passes on what client and server say once they have left HTTP, until
// both have ended.
func (h *Handler) switched(c *conn, out *answer, res *http.Response) error {
	header := out.Header()
	h.copyHeader(header, res)
	client, buf, err := out.leave()
	if err != nil {
		return err
	}
	defer client.Close()
	header.Set("Connection", "Upgrade")
	header.Set("Upgrade", res.Header.Get("Upgrade"))
	buf.WriteString("HTTP/1.1 101 " + http.StatusText(http.StatusSwitchingProtocols) + "\r\n") //nolint:errcheck // Flush tells
	_ = header.Write(buf)
	buf.WriteString("\r\n") //nolint:errcheck // see above
	err = client.SetWriteDeadline(time.Now().Add(patience))
	if err = errors.Join(err, buf.Flush()); err != nil {
		return nil // the client has gone, and is not to be answered any more
	}
	idle := time.AfterFunc(quiet, out.cut)
	defer idle.Stop()
	back := make(chan struct{})
	go func() {
		defer close(back)
		carry(c.Conn, buf.Reader, out, func(int) { idle.Reset(quiet) })
	}()
	carry(client, c.in, out, func(n int) {
		idle.Reset(quiet)
		out.written.Add(int64(n))
		_ = client.SetWriteDeadline(time.Now().Add(patience)) // it would show with the write
	})
	<-back
	return nil
}

// carry copies what comes, and then ends this direction; or all, if that fails.
func carry(to net.Conn, from io.Reader, out *answer, before func(n int)) {
	buf := bufferPool.Get().(*[32 << 10]byte)
	defer bufferPool.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			before(n)
			if _, err := to.Write(buf[:n]); err != nil {
				out.cut()
				return
			}
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			out.cut()
			return
		}
	}
}
