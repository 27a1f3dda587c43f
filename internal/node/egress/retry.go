package egress

import (
	"errors"
	"io"
	"sync"

	"github.com/atoll-run/atoll/internal/node/egress/sniff"
)

// guard carries what a TLS client says after its first ClientHello until it is
// known that there is no second one, which would name its host anew: TLS 1.3
// lets a server ask for one.
type guard struct {
	name string

	mu    sync.Mutex
	heard []byte // from the server, as far as it matters
	retry bool
	known chan struct{} // closed when retry is
}

// hear is told what the server says.
func (g *guard) hear(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.heard) >= sniff.RetrySize {
		return
	}
	g.heard = append(g.heard, b[:min(len(b), sniff.RetrySize-len(g.heard))]...)
	if retry, known := sniff.Retry(g.heard); known {
		g.settle(retry)
	}
}

// ended is told that the server says nothing more.
func (g *guard) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(false)
}

// settle is called with mu held.
func (g *guard) settle(retry bool) {
	select {
	case <-g.known:
	default:
		g.retry = retry
		close(g.known)
	}
}

// settled reports whether it is known that the server asks for nothing.
func (g *guard) settled() bool {
	select {
	case <-g.known:
		return !g.retry
	default:
		return false
	}
}

// hello carries a ClientHello and what follows, as far as that may name a host
// anew.
func (d *downstream) hello(from io.Reader, hello sniff.Hello) error {
	g := &guard{name: hello.ServerName, known: make(chan struct{})}
	d.mu.Lock()
	spoke := d.spoke
	d.guard = g
	d.mu.Unlock()
	if spoke {
		return errOtherName // servers of TLS do not speak first: this one may have asked for anything
	}
	d.flow.onCut(g.ended)
	d.start()
	d.flow.out(hello.Size)
	if _, err := io.CopyN(d.up, from, int64(hello.Size)); err != nil {
		return err
	}
	return g.carry(d.up, from, d.flow.out)
}

var errOtherName = errors.New("the second ClientHello names another host")

// carry copies records until there can be no second ClientHello, or it has been
// seen and is as the first.
func (g *guard) carry(to io.Writer, from io.Reader, count func(int)) error {
	var held []byte // whole records are passed on
	pass := func(n int) error {
		count(n)
		_, err := to.Write(held[:n])
		held = held[n:]
		return err
	}
	buf := make([]byte, 16<<10)
	for {
		if g.settled() {
			return pass(len(held))
		}
		switch step, size := sniff.NextRecord(held); step {
		case sniff.Wrong:
			return errOtherName
		case sniff.Pass:
			if err := pass(size); err != nil {
				return err
			}
			continue
		case sniff.Shake:
			<-g.known
			if !g.retry {
				continue
			}
			hello, err := sniff.ParseHello(held)
			if err == nil && (hello.ServerName != g.name || hello.Encrypted) || err != nil && !errors.Is(err, sniff.ErrShort) {
				return errOtherName
			}
			if err == nil {
				return pass(len(held))
			}
		}
		if len(held) > sniff.MaxHello {
			return errOtherName
		}
		n, err := from.Read(buf)
		held = append(held, buf[:n]...)
		if err != nil {
			return err // with what is not whole
		}
	}
}
