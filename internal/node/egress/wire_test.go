package egress

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/cryptobyte"
)

// wire is everything that arrives anywhere in the world: it listens at all
// addresses of the machine, and keeps who was connected to and what was said.
type wire struct {
	mu    sync.Mutex
	tcp   map[netip.Addr]int // connections
	heard map[netip.Addr]*bytes.Buffer
}

// newWire listens. What is said in HTTP is answered.
func newWire(t testing.TB) *wire {
	t.Helper()
	w := &wire{tcp: map[netip.Addr]int{}, heard: map[netip.Addr]*bytes.Buffer{}}
	var wg sync.WaitGroup
	var ends []func()
	for _, port := range []int{7, 22, 53, 80, 443, 853, 8080, 9443} {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{Port: port})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() { _ = l.Close() })
		wg.Go(func() {
			for {
				c, err := l.AcceptTCP()
				if err != nil {
					return
				}
				wg.Go(func() { w.serve(c) })
			}
		})
	}
	for _, port := range []int{53, 443, 5000} {
		l, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() { _ = l.Close() })
		wg.Go(func() {
			buf := make([]byte, 2048)
			for {
				n, err := l.Read(buf)
				if err != nil {
					return
				}
				w.hear(netip.IPv4Unspecified(), buf[:n])
			}
		})
	}
	t.Cleanup(func() {
		for _, end := range ends {
			end()
		}
		wg.Wait()
	})
	return w
}

func (w *wire) serve(c *net.TCPConn) {
	defer c.Close()
	at := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	w.mu.Lock()
	w.tcp[at]++
	w.mu.Unlock()
	buf := make([]byte, 64<<10)
	var asked []byte
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		w.hear(at, buf[:n])
		asked = append(asked, buf[:n]...)
		if buf[0] == 22 { // TLS: begin anew
			retry := append([]byte{22, 3, 3, 0, 50, 2, 0, 0, 46, 3, 3}, "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"...)
			_, _ = c.Write(append(retry, make([]byte, 12)...))
		}
		if bytes.HasPrefix(asked, []byte("POST ")) && !bytes.HasSuffix(asked, []byte("body")) && !bytes.HasSuffix(asked, []byte("0\r\n\r\n")) {
			continue // an answer before the body is over ends the connection
		}
		answers := bytes.Count(asked, []byte("HTTP/1.1\r\n"))
		asked = nil
		for range answers {
			if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")); err != nil {
				return
			}
		}
	}
}

func (w *wire) hear(at netip.Addr, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heard[at] == nil {
		w.heard[at] = new(bytes.Buffer)
	}
	w.heard[at].Write(b)
}

// check fails a test if anything has arrived that must not: a connection
// elsewhere than at addresses, or words that name the enemy.
func (w *wire) check(t *testing.T, at ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, n := range w.tcp {
		if !strings.Contains(strings.Join(at, " "), a.String()) {
			t.Errorf("%d connections to %s", n, a)
		}
	}
	for a, b := range w.heard {
		if low := bytes.ToLower(b.Bytes()); bytes.Contains(low, []byte("evil")) {
			t.Errorf("%s was told %q", a, b)
		}
	}
	clear(w.tcp)
	clear(w.heard)
}

// ext is an extension of a ClientHello.
type ext struct {
	kind uint16
	data []byte
}

// sni is the extension that names servers.
func sni(names ...string) ext {
	var b cryptobyte.Builder
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
		for _, n := range names {
			b.AddUint8(0)
			b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(n)) })
		}
	})
	return ext{0, b.BytesOrPanic()}
}

// helloMessage is a ClientHello without its record.
func helloMessage(exts ...ext) []byte {
	var b cryptobyte.Builder
	b.AddUint8(1)
	b.AddUint24LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddUint16(0x0303)
		b.AddBytes(make([]byte, 32))
		b.AddUint8(0)
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddUint16(0x1301) })
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddUint8(0) })
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
			for _, e := range exts {
				b.AddUint16(e.kind)
				b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(e.data) })
			}
		})
	})
	return b.BytesOrPanic()
}

// records cuts a message into handshake records of a size.
func records(message []byte, size int) string {
	var b cryptobyte.Builder
	for len(message) > 0 {
		part := message[:min(size, len(message))]
		message = message[len(part):]
		b.AddBytes([]byte{22, 3, 1})
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(part) })
	}
	return string(b.BytesOrPanic())
}

func hello(exts ...ext) string { return records(helloMessage(exts...), 1<<14) }
