package preview

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	maxHeader = 256 << 10 // of an answer, with what is said before it
	maxEarly  = 16        // answers before it
	stopTime  = 5 * time.Second
)

// staleError is why a connection that was used before failed: before the server
// said anything, which it may have hung up instead of.
type staleError struct{ error }

// forward passes a request on and its answer back. An error means that nothing
// was answered yet; what breaks off later ends the connection.
func (h *Handler) forward(out *answer, r *http.Request, v *visit) error {
	idle := idleConn
	if r.Body != nil && r.Body != http.NoBody {
		idle = freshTime // it cannot be sent twice
	}
	for {
		c, used, err := h.pool.take(out.ctx, v, idle)
		if err != nil {
			return err
		}
		err = h.exchange(c, out, r)
		if stale, ok := errors.AsType[staleError](err); !ok || !used || !repeatable(r) || out.ctx.Err() != nil {
			if ok {
				err = stale.error
			}
			return err
		}
		idle = 0
	}
}

// repeatable reports whether a request does no more when it is made twice.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return r.Body == nil || r.Body == http.NoBody
	}
	return false
}

// exchange sends a request on a connection and answers with what comes.
func (h *Handler) exchange(c *conn, out *answer, r *http.Request) (err error) {
	stop := context.AfterFunc(out.ctx, c.drop)
	reuse := false
	defer func() {
		if stop() && reuse {
			c.keep()
		} else {
			c.drop()
		}
	}()
	c.left = maxHeader
	up := upgradeOf(r.Header)
	c.head = h.appendHead(c.head[:0], r, up)
	sent := &sending{}
	if r.Body == nil || r.Body == http.NoBody {
		if _, err := c.Write(c.head); err != nil {
			return staleError{err}
		}
		sent.whole = true
	} else {
		_ = out.conn.EnableFullDuplex() // HTTP/2 needs no leave
		sent.begin(c, r)
		defer func() { sent.end(c, out, r) }()
	}
	res, err := readAnswer(c, out, r)
	if err != nil {
		return err
	}
	c.left = 1<<63 - 1
	if res.StatusCode == http.StatusSwitchingProtocols {
		if up == "" || !strings.EqualFold(upgradeOf(res.Header), up) || !sent.whole {
			return fmt.Errorf("the server switches to %q, which was not asked for", upgradeOf(res.Header))
		}
		return h.switched(c, out, res)
	}
	announced := h.copyHeader(out.Header(), res)
	out.WriteHeader(res.StatusCode)
	c.out = out
	buf := bufferPool.Get().(*[32 << 10]byte)
	defer bufferPool.Put(buf)
	for {
		n, err := res.Body.Read(buf[:])
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				panic(http.ErrAbortHandler) // the client has gone
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			h.cfg.Log.DebugContext(out.ctx, "preview broke off", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
	c.out = nil
	copyTrailer(out, res, announced)
	reuse = !res.Close && sent.done()
	return nil
}

// readAnswer reads the header of the answer, and passes on what comes before it.
func readAnswer(c *conn, out *answer, r *http.Request) (*http.Response, error) {
	if _, err := c.in.Peek(1); err != nil {
		if errors.Is(err, errTooLong) || out.ctx.Err() != nil {
			return nil, err
		}
		return nil, staleError{err}
	}
	for range maxEarly {
		res, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, nil
		}
		if res.StatusCode != http.StatusContinue { // which this server says itself
			header := out.Header()
			copyAnswerHeader(header, res.Header)
			out.ResponseWriter.WriteHeader(res.StatusCode)
			clear(header)
		}
	}
	return nil, fmt.Errorf("more than %d answers before the one", maxEarly)
}

// sending is a body on its way to the server.
type sending struct {
	whole bool // without a goroutine, there is no body
	over  chan struct{}
	err   error // read after over
}

func (s *sending) begin(c *conn, r *http.Request) {
	s.over = make(chan struct{})
	go func() {
		defer close(s.over)
		s.err = sendBody(c, r)
	}()
}

// done reports whether all was sent.
func (s *sending) done() bool {
	if s.whole {
		return true
	}
	select {
	case <-s.over:
		return s.err == nil
	default:
		return false
	}
}

// end returns when nothing reads the request any more.
func (s *sending) end(c *conn, out *answer, r *http.Request) {
	if s.done() {
		return
	}
	c.drop() // the next piece is the last
	late := time.NewTimer(stopTime)
	defer late.Stop()
	select {
	case <-s.over:
	case <-late.C:
		_ = out.flush()
		_ = out.conn.SetReadDeadline(time.Unix(1, 0))
		<-s.over
		if r.ProtoMajor < 2 { // where the next request begins cannot be known
			panic(http.ErrAbortHandler)
		}
	}
}

// sendBody sends the request, its body too.
func sendBody(c *conn, r *http.Request) error {
	if _, err := c.Write(c.head); err != nil {
		return err
	}
	w := bufio.NewWriterSize(c.Conn, 32<<10)
	buf := bufferPool.Get().(*[32 << 10]byte)
	defer bufferPool.Put(buf)
	chunked := r.ContentLength < 0
	for {
		n, err := r.Body.Read(buf[:])
		if n > 0 {
			if chunked {
				fmt.Fprintf(w, "%x\r\n", n)
			}
			w.Write(buf[:n]) //nolint:errcheck // Flush tells
			if chunked {
				w.WriteString("\r\n") //nolint:errcheck // likewise
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			c.drop() // what was sent is not all
			return err
		}
		if err := w.Flush(); err != nil { // as it comes
			return err
		}
	}
	if chunked {
		w.WriteString("0\r\n") //nolint:errcheck // see above
		for name, values := range r.Trailer {
			for _, value := range values {
				if httpguts.ValidTrailerHeader(name) {
					fmt.Fprintf(w, "%s: %s\r\n", name, newlines.Replace(value))
				}
			}
		}
		w.WriteString("\r\n") //nolint:errcheck // see above
	}
	return w.Flush()
}

var bufferPool = sync.Pool{New: func() any { return new([32 << 10]byte) }}
