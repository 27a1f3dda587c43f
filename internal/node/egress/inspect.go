package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/node/egress/sniff"
)

// namedPorts speak protocols that name their host; on these, nothing else is
// let through.
var namedPorts = []uint16{80, 443, 8080, 8443}

// inspect lets a connection through whose client names a host that it may
// reach.
//
// A server of some other protocol may speak first, so what it says is passed on
// while the client's first bytes are awaited; except on namedPorts.
func (s *Stack) inspect(f *flow, guest *guestConn, up *net.TCPConn) {
	strict := slices.Contains(namedPorts, f.dst.Port()) && s.decide(f.dst, "").names != nil
	down := &downstream{flow: f, guest: guest, up: up}
	defer down.wait()
	if !strict {
		down.start()
	}
	first, err := firstBytes(guest, s.cfg.HelloTimeout)
	v := s.decide(f.dst, "")
	named := v.names != nil // otherwise this is about secrets alone
	if err != nil {
		if named && len(first.bytes) > 0 {
			s.refuse("tcp", v.host, f.dst, RuleProtocol)
		}
		if strict || named && len(first.bytes) > 0 || err != io.EOF {
			f.cut()
			return
		}
		err = nil // and what has been read is passed on
	}
	protocol, host, rule := judge(v, first, strict)
	gate := map[sniff.Kind]*gate{sniff.HTTP: s.http1, sniff.HTTP2: s.http2}[first.kind]
	if !named {
		gate = nil
	}
	if rule == "" && gate != nil && !down.stop() {
		protocol, rule = "http", RuleHTTPForm // servers of HTTP do not speak first
	}
	if rule != "" {
		s.refuse(protocol, host, f.dst, rule)
		f.cut()
		return
	}
	if gate != nil {
		gate.serve(&gated{Conn: &replayed{guestConn: guest, first: first.bytes}, guest: guest}, up)
		return
	}
	f.wants(host)
	s.begin(f, !named)
	if first.kind == sniff.TLS && s.secretsFor(host) != nil && down.stop() {
		s.intercept(f, guest, first.bytes, up, host)
		return
	}
	from := io.MultiReader(bytes.NewReader(first.bytes), guest)
	if first.kind == sniff.TLS && named {
		err = down.hello(from, first.hello)
	}
	down.start()
	if err == nil {
		err = pump(up, from, f.out)
	}
	switch {
	case errors.Is(err, errOtherName):
		s.refuse("tls", host, f.dst, RuleTLSName)
		f.cut()
	case err != nil && err != io.EOF:
		f.cut()
	default:
		_ = up.CloseWrite()
	}
}

// judge tells what a connection's first bytes make of it, and the host that
// they name. HTTP is judged request by request, elsewhere.
func judge(v verdict, first opening, strict bool) (protocol, host string, rule Rule) {
	switch {
	case !v.ok():
		return "tcp", v.host, v.rule
	case first.kind == sniff.Other && strict:
		return "tcp", v.host, RuleProtocol
	case first.kind != sniff.TLS:
		return "tcp", "", ""
	case v.names == nil:
		return "tls", address.Hostname(first.hello.ServerName), ""
	case first.err != nil:
		return "tls", v.host, RuleTLSHello
	case first.hello.Encrypted:
		return "tls", first.hello.ServerName, RuleTLSECH
	}
	name := strings.ToLower(first.hello.ServerName)
	if name == "" || address.Hostname(name) != name || !slices.Contains(v.names, name) {
		return "tls", first.hello.ServerName, RuleTLSName
	}
	return "tls", name, ""
}

// opening is what a client has said first.
type opening struct {
	bytes []byte
	kind  sniff.Kind
	hello sniff.Hello // if kind is TLS and err is nil
	err   error       // why a hello was not understood
}

// firstBytes reads what a client says first, until it is known what that is.
// How long a client waits before it says anything is its own business; once it
// has begun it has some time.
func firstBytes(guest *guestConn, timeout time.Duration) (opening, error) {
	var o opening
	buf := make([]byte, 4<<10)
	defer func() { _ = guest.SetReadDeadline(time.Time{}) }()
	for {
		n, err := guest.Read(buf)
		if n > 0 {
			if len(o.bytes) == 0 {
				_ = guest.SetReadDeadline(time.Now().Add(timeout))
			}
			o.bytes = append(o.bytes, buf[:n]...)
			switch o.kind = sniff.Classify(o.bytes); o.kind {
			case sniff.More:
			case sniff.TLS:
				if o.hello, o.err = sniff.ParseHello(o.bytes); !errors.Is(o.err, sniff.ErrShort) || len(o.bytes) > sniff.MaxHello {
					return o, nil
				}
			default:
				return o, nil
			}
		}
		if err != nil {
			return o, err
		}
	}
}

// downstream carries what the server says, from when start is called.
type downstream struct {
	flow  *flow
	guest *guestConn
	up    *net.TCPConn

	wg      sync.WaitGroup
	started bool

	mu      sync.Mutex
	stopped bool
	spoke   bool   // the server has been heard
	guard   *guard // hears what the server says; may be nil
}

func (d *downstream) start() {
	if d.started {
		return
	}
	d.started = true
	d.wg.Go(func() {
		err := pump(d, d.up, d.flow.in)
		d.hear(nil)
		switch {
		case err == nil:
			_ = d.guest.CloseWrite()
		case errors.Is(err, os.ErrDeadlineExceeded): // stopped
		default:
			d.flow.cut()
		}
	})
}

// Write passes on what the server says.
func (d *downstream) Write(b []byte) (int, error) {
	if !d.hear(b) {
		return 0, os.ErrDeadlineExceeded
	}
	return d.guest.Write(b)
}

// hear notes what the server says, nothing when it has ended. False means that
// it is no longer listened to here.
func (d *downstream) hear(b []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spoke = d.spoke || len(b) > 0
	switch {
	case d.guard == nil:
	case b == nil:
		d.guard.ended()
	default:
		d.guard.hear(b)
	}
	return !d.stopped
}

// stop leaves the server to another goroutine; false if it has been heard.
func (d *downstream) stop() bool {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	if d.started {
		_ = d.up.SetReadDeadline(time.Unix(1, 0))
		d.wg.Wait()
		_ = d.up.SetReadDeadline(time.Time{})
	}
	return !d.spoke
}

func (d *downstream) wait() {
	d.wg.Wait()
	_ = d.guest.Close()
}
