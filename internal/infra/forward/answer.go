package forward

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a client may leave a piece of its answer unread before
	// the connection is cut.
	patience = 2 * time.Minute
	// quiet is how long a WebSocket may carry nothing.
	quiet = time.Hour
	// room is how many bytes the server surely takes without waiting for the client.
	room = 1 << 10
)

// answer counts what is written and does not wait for ever for a client that does not
// read. The proxy uses it from one goroutine at a time.
type answer struct {
	http.ResponseWriter
	conn    *http.ResponseController
	ctx     context.Context // of the request
	length  int64           // of the body, which Write sends piece by piece; 0 where the proxy does
	written atomic.Int64    // of the body
	unsent  bool            // something may be in the server's buffers
	there   int             // bytes of the body in them
	until   time.Time       // when the client's time is over; zero before it matters
	left    bool            // the connection has left HTTP
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	switch {
	case status == http.StatusContinue: // the server says it itself, when the body is read
		return
	case status < 200:
		cleanAnswer(a.Header())
	}
	a.unsent = true
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. It sends a piece of a body at once; the last one
// goes with the end of the request, so that a small page is one piece with its header.
func (a *answer) Write(p []byte) (int, error) {
	a.unsent = true
	if a.there += len(p); a.there > room {
		a.wait()
	}
	n, err := a.ResponseWriter.Write(p)
	if a.written.Add(int64(n)) < a.length && err == nil {
		err = a.flush()
	}
	return n, err
}

// FlushError sends what was written.
func (a *answer) FlushError() error { return a.flush() }

func (a *answer) flush() error {
	if !a.unsent || a.left {
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

// Hijack implements http.Hijacker. The end of the request ends the connection, too.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	client, buf, err := a.conn.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.left = true
	context.AfterFunc(a.ctx, func() { client.Close() })
	t := &tunnel{client, buf.Reader, a}
	t.expectTraffic()
	return t, bufio.NewReadWriter(buf.Reader, bufio.NewWriter(t)), nil
}

// tunnel is a client's connection after it has left HTTP. It ends when it carries
// nothing for long, in either direction.
type tunnel struct {
	net.Conn
	in  *bufio.Reader // of the connection, with what was read ahead
	out *answer
}

// expectTraffic gives the connection its time anew: a Read waits for as long as the
// last bytes in either direction allow.
func (t *tunnel) expectTraffic() { _ = t.SetReadDeadline(time.Now().Add(quiet)) } // a failure shows with the next read

// Read implements io.Reader.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	t.expectTraffic()
	return n, err
}

// Write implements io.Writer.
func (t *tunnel) Write(p []byte) (int, error) {
	t.expectTraffic()
	_ = t.SetWriteDeadline(time.Now().Add(patience)) // likewise
	n, err := t.Conn.Write(p)
	t.out.written.Add(int64(n))
	return n, err
}

// CloseWrite ends the direction to the client alone.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}
