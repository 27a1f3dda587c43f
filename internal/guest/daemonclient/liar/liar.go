// Package liar is a guest daemon that says whatever a test wants: what a sandbox does
// whose programs have taken their guest daemon over.
package liar

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// Liar is a guest daemon. Come is the cue that daemonclient.Dial wants.
type Liar struct {
	Folder string // where the host listens
	say    func(*proto.Conn)
}

// New returns one that does say on each connection, once it has greeted.
func New(t testing.TB, say func(*proto.Conn)) *Liar {
	t.Helper()
	folder, err := os.MkdirTemp("", "liar-") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return &Liar{folder, say}
}

// Dial makes a connection and greets on it.
func (l *Liar) Dial(first bool) (*proto.Conn, error) {
	c, err := l.Connect()
	if err != nil {
		return nil, err
	}
	return c, Greet(c, first)
}

// Connect makes a connection and says nothing.
func (l *Liar) Connect() (*proto.Conn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(l.Folder, "host")})
	if err != nil {
		return nil, err
	}
	return proto.NewConn(conn, 1<<10), nil
}

// Greet greets on a connection.
func Greet(c *proto.Conn, first bool) error {
	if err := c.Encode(proto.Hello, proto.Greeting{Version: 1, Instance: "liar", First: first}); err != nil {
		return err
	}
	return c.Flush()
}

// Come does what a guest daemon does with a cue.
func (l *Liar) Come(context.Context) error {
	first, err := l.Dial(true)
	if err != nil {
		return err
	}
	go func() {
		defer first.Close()
		for {
			t, err := first.Next()
			var w proto.Wanted
			if err != nil || t != proto.More || first.Decode(&w) != nil {
				return
			}
			for range w.Connections {
				c, err := l.Dial(false)
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					l.say(c)
				}()
			}
		}
	}()
	return nil
}

// Answers has each request answered as answer says; nil is for none, ever.
func Answers(answer func(q *proto.Request) *proto.Reply) func(*proto.Conn) {
	return func(c *proto.Conn) {
		for {
			t, err := c.Next()
			var q proto.Request
			if err != nil || t != proto.Ask || c.Decode(&q) != nil {
				return
			}
			r := answer(&q)
			if r == nil {
				_, _ = io.Copy(io.Discard, c.Transport) // until the host hangs up
				return
			}
			if c.Encode(proto.Answer, r) != nil || c.Flush() != nil {
				return
			}
		}
	}
}
