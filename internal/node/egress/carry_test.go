package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// serveHTTP serves at an address, with HTTP/2 without TLS too.
func serveHTTP(t testing.TB, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetHTTP2(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(s.Close)
	return s
}

// client speaks HTTP from inside.
func (r *rig) client(t testing.TB, tr *http.Transport) *http.Client {
	tr.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(address)
		a := r.query(t, host, dns.TypeA)
		if len(a.Answer) == 0 {
			return nil, errors.New("no such host")
		}
		return r.dial("tcp", net.JoinHostPort(a.Answer[0].(*dns.A).A.String(), port))
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

func TestHTTP(t *testing.T) {
	s := serveHTTP(t, good+":80", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum")
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %q %s", r.Proto, r.Method, r.Host, r.RequestURI, r.Header.Get("X-Forwarded-For"), body)
		if r.URL.Path == "/big" {
			_, _ = w.Write(make([]byte, 3<<20))
		}
		w.Header().Set("Sum", "1")
	})
	s.Start()
	for _, http2 := range []bool{false, true} {
		r := newRig(t, Config{}, hosts("good.test"))
		r.zone.set("good.test", good)
		tr := &http.Transport{Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP1(!http2)
		tr.Protocols.SetUnencryptedHTTP2(http2)
		c := r.client(t, tr)
		proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
		for _, path := range []string{"/a%2Fb//c?x=1;y=%zz&&", "/", "/big"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://good.test"+path, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Forwarded-For", "me")
			a, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(a.Body)
			want := proto + " POST good.test " + path + ` "me" body`
			if path == "/big" {
				want += string(make([]byte, 3<<20))
			}
			if err != nil || string(got) != want {
				t.Errorf("got %.200q, %v, instead of %.200q", got, err, want)
			}
			if a.Trailer.Get("Sum") != "1" {
				t.Errorf("%s: the trailer is %v", proto, a.Trailer)
			}
		}
		if u := r.Usage(); u.Connections != 1 || u.BytesIn < 3<<20 || u.BytesOut < 100 || u.Hosts[0] != "good.test" {
			t.Errorf("usage is %+v", u)
		}
	}
}

func TestTLS(t *testing.T) {
	for name, set := range map[string]func(*tls.Config){
		"1.3":           func(*tls.Config) {},
		"1.3 and retry": func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP521} }, // of which clients bring no key
		"1.2":           func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serveHTTP(t, good+":443", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
			s.EnableHTTP2 = true
			s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
			set(s.TLS)
			s.StartTLS()
			r := newRig(t, Config{}, hosts("example.com")) // the certificate's
			r.zone.set("example.com", good)
			tr := s.Client().Transport.(*http.Transport).Clone()
			client := r.client(t, tr)
			var dials atomic.Uint64
			dial := tr.DialContext
			tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, network, address)
			}
			for range 2 { // the second resumes
				a, err := client.Get("https://example.com/")
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(a.Body)
				a.Body.Close()
				if err != nil || string(got) != "HTTP/2.0" {
					t.Errorf("got %q, %v", got, err)
				}
				tr.CloseIdleConnections()
			}
			// The client dials once more when a connection closes under its request.
			if u, n := r.Usage(), dials.Load(); n < 2 || u.Connections != n || len(u.Refused) > 0 || u.BytesOut == 0 {
				t.Errorf("after %d dials usage is %+v", n, u)
			}
		})
	}
}

// A server that speaks first is heard before the client says anything.
func TestServerFirst(t *testing.T) {
	at := listen(t, good+":22", func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "220 hello\r\n")
		_, _ = io.Copy(c, c)
	})
	r := newRig(t, Config{}, hosts("good.test"))
	r.zone.set("good.test", good)
	r.query(t, "good.test", dns.TypeA)
	c, err := r.dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	got := make([]byte, 11)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "220 hello\r\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	for range 3 {
		if _, err := io.WriteString(c, "EHLO me\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, got[:9]); err != nil || string(got[:9]) != "EHLO me\r\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// Both directions at once, each ended on its own.
func TestHalfClose(t *testing.T) {
	const size = 8 << 20
	sum := make(chan []byte, 1)
	at := listen(t, good+":7", func(c *net.TCPConn) {
		got, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		sum <- got
		_, _ = c.Write(got)
	})
	r := newRig(t, Config{}, *cidr(good + "/32"))
	c, err := r.dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make([]byte, size)
	_, _ = rand.Read(sent)
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) || !bytes.Equal(<-sum, sent) {
		t.Errorf("%d bytes came back changed, %v", len(got), err)
	}
	if u := r.Usage(); u.BytesIn != size || u.BytesOut != size {
		t.Errorf("usage is %+v", u)
	}
}

// What the world refuses is refused, and what it breaks is broken.
func TestWorldRefuses(t *testing.T) {
	at := listen(t, good+":7", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.SetLinger(0)
	})
	r := newRig(t, Config{}, *cidr(good + "/32"))
	if _, err := r.dial("tcp", good+":9"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port without a server: %v", err)
	}
	c, err := r.dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection that the server broke: %v", err)
	}
}

func TestUDP(t *testing.T) {
	echo, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(good+":5000")))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer echo.Close()
	wg.Go(func() {
		buf := make([]byte, 100)
		for {
			n, from, err := echo.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = echo.WriteToUDPAddrPort(buf[:n], from)
		}
	})
	r := newRig(t, Config{MaxFlows: 4}, hosts("good.test"))
	r.zone.set("good.test", good)
	r.query(t, "good.test", dns.TypeA)
	c, err := r.dial("udp", good+":5000")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	for i := range 100 {
		msg := fmt.Sprintf("datagram %d", i)
		if _, err := io.WriteString(c, msg); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100)
		if n, err := c.Read(got); err != nil || string(got[:n]) != msg {
			t.Fatalf("got %q, %v", got[:n], err)
		}
	}
	for range 4 {
		d, err := r.dial("udp", good+":5000")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		_, _ = d.Write([]byte("x"))
	}
	r.events.await(t, Event{Protocol: "udp", Rule: RuleConnCount})
}

// A connection that a new policy does not allow is cut; others stay.
func TestSetPolicy(t *testing.T) {
	at := listen(t, good+":7", func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	other := listen(t, evil+":7", func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	r := newRig(t, Config{}, hosts("good.test", "evil.test"))
	r.zone.set("good.test", good)
	r.zone.set("evil.test", evil)
	r.query(t, "good.test", dns.TypeA)
	r.query(t, "evil.test", dns.TypeA)
	conns := map[string]net.Conn{}
	for name, at := range map[string]string{"good": at.String(), "evil": other.String()} {
		c, err := r.dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = c.Write([]byte("\x00"))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		conns[name] = c
	}
	if err := r.SetPolicy(hosts("good.test")); err != nil {
		t.Fatal(err)
	}
	if _, err := conns["evil"].Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection that is not allowed any more: %v", err)
	}
	r.events.await(t, Event{Host: "evil.test", Rule: RuleHost})
	_, _ = conns["good"].Write([]byte("\x00"))
	if _, err := conns["good"].Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := r.SetPolicy(runtime.NetworkPolicy{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conns["good"].Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection of a sandbox without network: %v", err)
	}
	if err := r.SetPolicy(hosts("http://x")); err == nil {
		t.Error("a policy that cannot be kept to is taken")
	}
}

func TestBounds(t *testing.T) {
	at := listen(t, good+":7", func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	r := newRig(t, Config{MaxConnections: 3, DNSRate: 1}, *unrestricted)
	for range 3 {
		c, err := r.dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	count := func(rule Rule) uint64 { return r.Usage().Refused[rule] }
	// A refusal that is late is asked for again by the kernel, and counts again.
	for tries := 1; ; tries++ {
		before := count(RuleConnCount)
		if _, err := r.dial("tcp", at.String()); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("one connection too many: %v", err)
		}
		n := count(RuleConnCount) - before
		if n == 1 {
			break
		}
		if tries == 5 {
			t.Errorf("one connection too many counts as %d", n)
			break
		}
	}
	r.events.await(t, Event{Rule: RuleConnCount})
	for range 100 { // each that comes a second after the one before is answered
		r.query(t, "none.test", dns.TypeA)
		if count(RuleDNSRate) >= 2 {
			break
		}
	}
	r.events.await(t, Event{Rule: RuleDNSRate})
	if count(RuleDNSRate) < 2 {
		t.Errorf("usage is %+v", r.Usage())
	}
}

func TestIdleConnectionsAreCut(t *testing.T) {
	at := listen(t, good+":7", func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	r := newRig(t, Config{IdleTimeout: 2 * time.Second}, *unrestricted)
	c, err := r.dial("tcp", at.String())
	if err == nil { // else it was cut before this thread knew of it
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection without traffic: %v", err)
	}
}

// DNS works over TCP, gives nothing but addresses, and says who prohibits.
func TestDNS(t *testing.T) {
	r := newRig(t, Config{}, hosts("good.test"))
	r.zone.set("good.test", good, "10.1.2.9", "203.0.113.12")
	c, err := r.dial("tcp", Gateway.String()+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	co := &dns.Conn{Conn: c}
	ask := func(name string, kind uint16) *dns.Msg {
		m := new(dns.Msg)
		m.SetQuestion(name, kind)
		m.SetEdns0(1232, false)
		if err := co.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
		a, err := co.ReadMsg()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask("GOOD.test.", dns.TypeA); len(a.Answer) != 2 || a.Answer[0].Header().Name != "GOOD.test." {
		t.Errorf("the answer is %v", a)
	}
	r.events.await(t, Event{Host: "good.test", Rule: RuleFloor})
	for _, kind := range []uint16{dns.TypeAAAA, dns.TypeTXT, dns.TypeHTTPS, dns.TypeANY, dns.TypeCNAME} {
		if a := ask("good.test.", kind); a.Rcode != dns.RcodeSuccess || len(a.Answer) > 0 {
			t.Errorf("the answer is %v", a)
		}
	}
	a := ask("evil.test.", dns.TypeA)
	if e := a.IsEdns0(); a.Rcode != dns.RcodeNameError || e == nil || len(e.Option) != 1 {
		t.Errorf("the answer is %v", a)
	}
	if got := r.zone.queries(); len(got) != 1 {
		t.Errorf("the world was asked for %q", got)
	}
}

// WebSockets pass, and count; nothing else leaves HTTP.
func TestUpgrade(t *testing.T) {
	serveHTTP(t, good+":80", func(w http.ResponseWriter, r *http.Request) {
		kind := r.Header.Get("Upgrade")
		if kind == "" {
			fmt.Fprint(w, "no upgrade")
			return
		}
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+kind+"\r\n\r\n")
		_, _ = io.Copy(c, buf)
	}).Start()
	for kind, want := range map[string]string{"websocket": "101 Switching Protocols", "h2c": "200 OK", "TLS/1.0": "200 OK"} {
		r := newRig(t, Config{}, hosts("good.test"))
		r.zone.set("good.test", good)
		r.query(t, "good.test", dns.TypeA)
		c, err := r.dial("tcp", good+":80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, get("/", "Host: good.test", "Connection: Upgrade", "Upgrade: "+kind))
		br := bufio.NewReader(c)
		a, err := http.ReadResponse(br, nil)
		if err != nil || a.Status != want {
			t.Fatalf("%s is answered %v, %v", kind, a, err)
		}
		if kind != "websocket" {
			continue
		}
		_, _ = io.WriteString(c, "GET / is no request in here\r\n")
		if line, err := br.ReadString('\n'); err != nil || line != "GET / is no request in here\r\n" {
			t.Errorf("got %q, %v", line, err)
		}
		if err := r.SetPolicy(hosts()); err != nil {
			t.Fatal(err)
		}
		if _, err := br.ReadByte(); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("a WebSocket that is not allowed any more: %v", err)
		}
	}
}
