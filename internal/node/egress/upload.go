package egress

import (
	"io"
	"net/http"
	"sync/atomic"
)

// upload is the body of a request in HTTP/1 that is passed on.
//
// Our server throws away what it has of a body when the answer begins, except if
// the connection ends with that. A transport that reads the body then fails, and
// closes the connection that the rest of the answer is to come by. So nothing is
// read once the whole body was, and the connection ends with an answer that comes
// before.
type upload struct {
	io.ReadCloser
	left  int64 // of what was declared; negative if nothing was
	whole atomic.Bool
}

func newUpload(r *http.Request) *upload {
	return &upload{ReadCloser: r.Body, left: r.ContentLength}
}

func (u *upload) Read(b []byte) (int, error) {
	if u.whole.Load() {
		return 0, io.EOF
	}
	n, err := u.ReadCloser.Read(b)
	if u.left > 0 {
		u.left -= int64(n)
	}
	if u.left == 0 || err == io.EOF {
		u.whole.Store(true)
	}
	return n, err
}

// answered is called when an answer begins.
func (c *gated) answered(a *http.Response) error {
	if c.upload != nil && !c.upload.whole.Load() && a.StatusCode != http.StatusSwitchingProtocols {
		a.Header.Set("Connection", "close")
	}
	return nil
}
