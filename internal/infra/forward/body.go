package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// stopTime is how long a client may take for the next piece of a body that the server
// in the sandbox does not want any more.
const stopTime = 5 * time.Second

// requestBody is the body of a client's request. The transport may still read it when
// the answer is complete; nothing reads it after end has returned.
type requestBody struct {
	io.ReadCloser
	request *http.Request            // as the server gave it; its trailer comes with the end of the body
	conn    *http.ResponseController // of the client
	unwatch func() bool
	trailer http.Header // what is sent of the trailer

	reading chan struct{} // full during a Read
	over    bool          // guarded by reading

	mu    sync.Mutex
	timer *time.Timer // guarded by mu
	ended bool        // guarded by mu
	cut   bool        // guarded by mu
}

// newRequestBody returns the body of r. Reads of it fail when ctx ends, because the
// transport waits for them before it returns an error.
func newRequestBody(ctx context.Context, r *http.Request, conn *http.ResponseController) *requestBody {
	b := &requestBody{ReadCloser: r.Body, request: r, conn: conn, reading: make(chan struct{}, 1)}
	b.unwatch = context.AfterFunc(ctx, b.stop)
	return b
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.reading <- struct{}{}
	defer func() { <-b.reading }()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && b.trailer != nil {
		for name, values := range b.request.Trailer {
			if mayTrail(name, b.request.Header) {
				b.trailer[name] = values
			}
		}
	}
	return n, err
}

// announce returns the trailer for the request to the server in the sandbox: the names
// that are known, whose values come with the end of the body.
func (b *requestBody) announce() http.Header {
	b.trailer = make(http.Header)
	for name := range b.request.Trailer {
		if mayTrail(name, b.request.Header) {
			b.trailer[name] = nil
		}
	}
	return b.trailer
}

// stop makes a Read fail that waits for the client.
func (b *requestBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.cut = true
		_ = b.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// hurry gives a Read that waits for the client stopTime. A stream of HTTP/2 gets none:
// the client's other requests do not depend on where it ends.
func (b *requestBody) hurry() {
	if b.request.ProtoMajor >= 2 {
		b.stop()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && b.timer == nil {
		b.timer = time.AfterFunc(stopTime, b.stop)
	}
}

// end returns when nothing reads the body any more. It panics if where the next request
// begins cannot be known.
func (b *requestBody) end(out *answer) {
	select {
	case b.reading <- struct{}{}:
	default:
		_ = out.flush() // whether or not the client is still there
		b.hurry()
		b.reading <- struct{}{}
	}
	b.over = true
	<-b.reading
	b.unwatch()
	b.mu.Lock()
	b.ended = true
	if b.timer != nil {
		b.timer.Stop()
	}
	cut := b.cut
	b.mu.Unlock()
	if cut && b.request.ProtoMajor < 2 {
		_ = out.flush() // see above
		panic(http.ErrAbortHandler)
	}
}
