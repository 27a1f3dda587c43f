package forward

import (
	"net"
	"sync"
)

// conn is a connection to a port of a sandbox.
type conn struct {
	net.Conn
	place *place
	once  sync.Once

	mu      sync.Mutex
	changed sync.Cond
	reading bool         // guarded by mu; a Read is in progress
	asked   bool         // guarded by mu; something was sent
	closed  bool         // guarded by mu
	body    *requestBody // guarded by mu; of the one request that it is for
}

func newConn(raw net.Conn, at *place) *conn {
	c := &conn{Conn: raw, place: at}
	c.changed.L = &c.mu
	return c
}

// carry says that the connection is for one request, which has a body.
func (c *conn) carry(body *requestBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.body = body; c.closed {
		body.hurry()
	}
}

// settle waits until the transport has seen that nothing is left of what the server
// sent before: then it reads. A connection with more than was asked for it closes, and
// takes another. Without this an answer that came without a request could be that of
// the next one.
func (c *conn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.reading && !c.closed {
		c.changed.Wait()
	}
}

// Read implements io.Reader. It does not begin before a request is sent: the transport
// would take a server that answers early for one that speaks without being asked.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reading = true
	c.changed.Broadcast()
	for !c.asked && !c.closed {
		c.changed.Wait()
	}
	c.mu.Unlock()
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	return n, err
}

// Write implements io.Writer. A server may answer before it has read the body, and
// close the connection. The transport would take the failed write for the outcome, so
// that waits until the transport has the answer, or the end, and closes the connection.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if !c.asked {
		c.asked = true
		c.changed.Broadcast()
	}
	c.mu.Unlock()
	n, err := c.Conn.Write(p)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		for c.body != nil && !c.closed {
			c.changed.Wait()
		}
	}
	return n, err
}

// CloseWrite ends the direction to the server alone.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Close implements io.Closer. The transport waits for a body that is being read before
// it says that the connection failed, which is why that must not take long.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.changed.Broadcast()
		body := c.body
		c.mu.Unlock()
		err = c.Conn.Close()
		if body != nil {
			body.hurry()
		}
		<-c.place.slots
		c.place.leave()
	})
	return err
}
