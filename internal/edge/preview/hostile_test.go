package preview_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// liar makes a preview of a server that says to each request what it likes.
// gone is told when one of its connections has ended.
func liar(t *testing.T, say func(w io.Writer)) (r *rig, gone chan struct{}) {
	t.Helper()
	r = newRig(t, func(http.ResponseWriter, *http.Request) {})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	gone = make(chan struct{}, 64)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						break
					}
					_, _ = io.Copy(io.Discard, req.Body)
					say(conn)
				}
				gone <- struct{}{}
			}()
		}
	}()
	r.url = r.expose(t, uint16(ln.Addr().(*net.TCPAddr).Port))
	return r, gone
}

// endless writes a piece until the connection is closed.
func endless(head, piece string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, head)
		for err == nil {
			_, err = io.WriteString(w, piece)
		}
	}
}

// says writes one text.
func says(text string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, text) }
}

// TestAnswersThatCannotBe: the visitor is told, and the connection is not used
// again.
func TestAnswersThatCannotBe(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, say := range map[string]func(io.Writer){
		"no HTTP":            says("SSH-2.0-x\r\n\r\n"),
		"long header":        says(ok + "X: " + strings.Repeat("x", 300<<10) + "\r\n\r\n"),
		"endless header":     endless(ok, "X: y\r\n"),
		"endless line":       endless(ok+"X: ", "xxxxxxxxxxxxxxxx"),
		"endless status":     endless("HTTP/1.1 200 ", "OK"),
		"early answers":      endless("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
		"early and long":     endless("", "HTTP/1.1 103 Early Hints\r\nX: "+strings.Repeat("x", 60<<10)+"\r\n\r\n"),
		"continues":          endless("", "HTTP/1.1 100 Continue\r\n\r\n"),
		"two lengths":        says(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
		"negative length":    says(ok + "Content-Length: -1\r\n\r\n"),
		"length of words":    says(ok + "Content-Length: 0x10\r\n\r\n"),
		"unknown encoding":   says(ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
		"line without colon": says(ok + "Set-Cookie\r\nContent-Length: 0\r\n\r\n"),
		"upgrade unasked":    says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			r, gone := liar(t, say)
			res, text := r.do(t, "GET", r.url.String(), nil, nil)
			if res.StatusCode != http.StatusBadGateway || !strings.Contains(text, "no answer that HTTP allows") {
				t.Errorf("%d %.200s", res.StatusCode, text)
			}
			if res.Header.Get("Link") != "" {
				t.Errorf("what came before is in the answer: %v", res.Header)
			}
			<-gone
		})
	}
}

// TestBodiesThatBreakOff: no part of a body passes for all of it.
func TestBodiesThatBreakOff(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, say := range map[string]func(io.Writer){
		"short": func(w io.Writer) {
			says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab")(w)
			w.(net.Conn).Close()
		},
		"no last chunk": func(w io.Writer) {
			says(chunked + "2\r\nab\r\n")(w)
			w.(net.Conn).Close()
		},
		"chunk of words":   says(chunked + "2\r\nab\r\nzz\r\n"),
		"chunk too long":   says(chunked + "2\r\nabcd\r\n0\r\n\r\n"),
		"endless chunk":    endless(chunked+"2\r\nab\r\n1;", "x"),
		"length overflows": says(chunked + "2\r\nab\r\n11111111111111111\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			r, gone := liar(t, say)
			res, err := r.client.Get(r.url.String())
			if err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			if err == nil {
				t.Error("the answer passes for a whole one")
			}
			<-gone
		})
	}
}

// TestEndlessBody: the server's connection ends when the client stops reading.
func TestEndlessBody(t *testing.T) {
	r, gone := liar(t, endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nabcd\r\n"))
	res, err := r.client.Get(r.url.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, res.Body, 64<<10); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	<-gone
}

// TestAnswersAreNotMixed: an answer without a request is never given to another client.
func TestAnswersAreNotMixed(t *testing.T) {
	r, _ := liar(t, says("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue"+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake"))
	for range 20 {
		if _, text := r.do(t, "GET", r.url.String(), nil, nil); text != "true" {
			t.Fatal(text)
		}
	}
}

// TestHeadersThatReachFurther: an answer is its own host's, and one answer.
func TestHeadersThatReachFurther(t *testing.T) {
	for name, want := range map[string]func(http.Header) bool{
		"Set-Cookie: a=1; Domain=localhost":                   func(h http.Header) bool { return h.Get("Set-Cookie") == "a=1" },
		"set-cookie: a=1;DOMAIN\t=.localhost;Path=/":          func(h http.Header) bool { return h.Get("Set-Cookie") == "a=1;Path=/" },
		"Set-Cookie: a=1; domain; Domain=localhost; domain=x": func(h http.Header) bool { return h.Get("Set-Cookie") == "a=1" },
		"Connection: Referrer-Policy, X-Robots-Tag, X-A\r\nX-A: 1": func(h http.Header) bool {
			return h.Get("Referrer-Policy") != "" && h.Get("X-Robots-Tag") != "" && h.Get("X-A") == ""
		},
		"Set-Cookie : a=1":                                          func(h http.Header) bool { return h.Get("Set-Cookie") == "" },
		"Connection: close\r\nKeep-Alive: timeout=9":                func(h http.Header) bool { return h.Get("Keep-Alive") == "" },
		"Clear-Site-Data: \"*\"\r\nAlt-Svc: h2=\"evil:1\"":          func(h http.Header) bool { return h.Get("Clear-Site-Data")+h.Get("Alt-Svc") == "" },
		"X-A: a\rSet-Cookie: b=1":                                   func(h http.Header) bool { return h.Get("Set-Cookie") == "" },
		"X-A: a\r\n Set-Cookie: b=1":                                func(h http.Header) bool { return h.Get("Set-Cookie") == "" },
		"Proxy-Authenticate: Basic\r\nProxy-Connection: keep-alive": func(h http.Header) bool { return h.Get("Proxy-Authenticate")+h.Get("Proxy-Connection") == "" },
		"Upgrade: h2c\r\nConnection: Upgrade":                       func(h http.Header) bool { return h.Get("Upgrade") == "" },
		"Trailer: Set-Cookie, Content-Length":                       func(h http.Header) bool { return h.Get("Content-Length") == "2" || h.Get("Content-Length") == "" },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := liar(t, says("HTTP/1.1 200 OK\r\n"+name+"\r\nContent-Length: 2\r\n\r\nok"))
			res, err := r.client.Get(r.url.String())
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err == nil && res.StatusCode == http.StatusOK && (string(text) != "ok" || !want(res.Header)) || err != nil {
				t.Errorf("%d %q %v: %v", res.StatusCode, text, res.Header, err)
			}
		})
	}
}

// TestUpgradeThatIsNone: a server that answers an upgrade with another, or with
// none, has no connection of its own.
func TestUpgradeThatIsNone(t *testing.T) {
	r, gone := liar(t, says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
	if res, _ := r.do(t, "GET", r.url.String(), map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, nil); res.StatusCode != http.StatusBadGateway {
		t.Error(res.Status)
	}
	<-gone
	// With a body no server could tell where the other protocol begins.
	r, gone = liar(t, says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	if res, _ := r.do(t, "POST", r.url.String(), map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, strings.NewReader("GET / HTTP/1.1\r\n\r\n")); res.StatusCode != http.StatusBadGateway {
		t.Error(res.Status)
	}
	<-gone
}

// TestRequestsCannotBeForged: what a visitor says is one request, and says nothing
// that only this server may say.
func TestRequestsCannotBeForged(t *testing.T) {
	r, _ := liar(t, func(io.Writer) {})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	u := r.expose(t, uint16(ln.Addr().(*net.TCPAddr).Port))
	for _, head := range []string{
		"GET /?a=b\tc HTTP/1.1\r\nHost: %s\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: %s\r\nX_Forwarded_For: 10.9.9.9\r\nx-forwarded_host: evil\r\nContent_Length: 5\r\nTransfer_Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: %s\r\nConnection: X-Forwarded-For, Host, keep-alive\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: %s\r\nAuthorization:  Bearer   sk-atoll-abc\r\n\r\n",
	} {
		seen := make(chan string, 1)
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			var all strings.Builder
			for {
				line, err := in.ReadString('\n')
				all.WriteString(line)
				if err != nil || line == "\r\n" {
					break
				}
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			seen <- all.String()
		}()
		conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, head, u.Host)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusBadRequest {
			if dial, err := net.Dial("tcp", ln.Addr().String()); err == nil {
				dial.Close() // for who waits
			}
			<-seen
			continue
		}
		got := <-seen
		lower := strings.ToLower(got)
		if strings.Count(got, u.Host) != 2 || strings.Count(lower, "x-forwarded-for: 203.0.113.7\r\n") != 1 || strings.Contains(lower, "_") || strings.Contains(lower, "authorization") {
			t.Errorf("the server got %q", got)
		}
	}
}

// TestRevoked: what is open ends with its preview, and nothing else does.
func TestRevoked(t *testing.T) {
	r := newRig(t, echo)
	other, otherIn := r.upgrade(t)
	second := newLine(t)
	r2 := r.url
	r.url = r.expose(t, second.port)
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", r.url.Host)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data\n" {
		t.Fatal(line, err)
	}
	if err := r.previews.Close(t.Context(), r.id, second.port); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); err == nil || errors.Is(err, errDeadline) {
		t.Errorf("a stream ended with %v", err)
	}
	<-second.gone
	fmt.Fprint(other, "still\n")
	if line, err := otherIn.ReadString('\n'); line != "still\n" {
		t.Errorf("another preview: %q, %v", line, err)
	}
	if err := r.previews.Close(t.Context(), r.id, r.port); err != nil {
		t.Fatal(err)
	}
	if _, err := otherIn.ReadString('\n'); err == nil {
		t.Error("a WebSocket outlives its preview")
	}
	if res, _ := r.do(t, "GET", r2.String(), nil, nil); res.StatusCode != http.StatusNotFound {
		t.Error(res.Status)
	}
}

var errDeadline = errors.New("i/o timeout")

// line is a server that begins an answer and does not end it.
type line struct {
	port uint16
	gone chan struct{}
}

func newLine(t *testing.T) *line {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	l := &line{uint16(ln.Addr().(*net.TCPAddr).Port), make(chan struct{})}
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata\n")
		_, _ = io.Copy(io.Discard, conn)
		close(l.gone)
	}()
	return l
}

// raw is a server in a sandbox that records what it is sent, as bytes. It answers
// every request when its header has come, and reads none of the body as such.
type raw struct {
	*rig
	mu    sync.Mutex
	conns []*strings.Builder // guarded by mu; what each connection brought
}

func newRaw(t *testing.T, answer string) *raw {
	t.Helper()
	s := &raw{rig: newRig(t, func(http.ResponseWriter, *http.Request) {})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	s.url = s.expose(t, uint16(ln.Addr().(*net.TCPAddr).Port))
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			got := &strings.Builder{}
			s.mu.Lock()
			s.conns = append(s.conns, got)
			s.mu.Unlock()
			go s.serve(conn, got, answer)
		}
	}()
	return s
}

func (s *raw) serve(conn net.Conn, got *strings.Builder, answer string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		s.mu.Lock()
		got.WriteString(line)
		s.mu.Unlock()
		if err != nil {
			return
		}
		if line == "\r\n" {
			_, _ = io.WriteString(conn, answer)
		}
	}
}

// got returns what each connection brought so far.
func (s *raw) got() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		all = append(all, c.String())
	}
	return all
}

// send sends bytes to the preview as a client of its own, and returns the answer.
func (s *raw) send(t *testing.T, format string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", s.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, format, s.url.Host)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// TestTrailersCannotForge: what a visitor cannot say before a body it cannot say behind
// it.
func TestTrailersCannotForge(t *testing.T) {
	var trailer http.Header
	r := newRig(t, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		trailer = req.Trailer
	})
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	const forged = "X-Forwarded-For X-Forwarded-Host X-Forwarded-Port X-Forwarded-Prefix X_Forwarded_For Forwarded X-Real-Ip X_Real_IP Transfer_Encoding Content_Length Upgrade Keep-Alive Proxy_Connection X-Hop"
	names := strings.Fields(forged)
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nConnection: X-Hop\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, %s\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n%s: 10.9.9.9\r\n\r\n",
		r.url.Host, strings.Join(names, ", "), strings.Join(names, ": 10.9.9.9\r\n"))
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	if trailer.Get("X-Sum") != "1" || trailer.Get("X-More") != "2" || len(trailer) != 2 {
		t.Errorf("the server got the trailer %v", trailer)
	}
}

// TestForwardedHeadersCannotBeForged by any name that begins so.
func TestForwardedHeadersCannotBeForged(t *testing.T) {
	var header http.Header
	r := newRig(t, func(_ http.ResponseWriter, req *http.Request) { header = req.Header })
	r.do(t, "GET", r.url.String(), map[string]string{"X-Forwarded": "for=10.9.9.9", "X-Forwarded-Prefix": "/evil", "X_forwarded_ssl": "on"}, nil)
	for name := range header {
		if strings.Contains(strings.ToLower(name), "forwarded") && name != "X-Forwarded-For" && name != "X-Forwarded-Host" && name != "X-Forwarded-Proto" {
			t.Errorf("the server got %s: %s", name, header[name])
		}
	}
}

// TestOnlyWebSocketsSwitch: a request for another protocol is passed on without it, and a
// server that switches all the same gets no connection of its own.
func TestOnlyWebSocketsSwitch(t *testing.T) {
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n\r\n",
	} {
		s := newRaw(t, noContent)
		if res := s.send(t, head); res.StatusCode != http.StatusNoContent {
			t.Errorf("%q: %s", head, res.Status)
		}
		if got := strings.ToLower(strings.Join(s.got(), "")); strings.Contains(got, "upgrade") || strings.Contains(got, "http2") {
			t.Errorf("%q: the server got %q", head, got)
		}
		s = newRaw(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		if res := s.send(t, head); res.StatusCode != http.StatusBadGateway {
			t.Errorf("%q, and the server switches: %s", head, res.Status)
		}
	}
	// What the server says of the switch is not passed on as it is.
	s := newRaw(t, "HTTP/1.1 101 x\rSet-Cookie: a=1\r\nConnection: Upgrade, X-Hop\r\nUpgrade: WebSocket\r\nX-Hop: 1\r\nAlt-Svc: x\r\nSet-Cookie: b=1; Domain=localhost\r\n\r\n")
	res := s.send(t, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if res.StatusCode != http.StatusSwitchingProtocols || res.Status != "101 Switching Protocols" || res.Header.Get("X-Hop")+res.Header.Get("Alt-Svc") != "" || res.Header.Get("Set-Cookie") != "b=1" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}

// TestEarlyAnswersAreClean: what comes before an answer reaches no further than it.
func TestEarlyAnswersAreClean(t *testing.T) {
	s := newRaw(t, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nSet-Cookie: a=1; Domain=localhost\r\nAlt-Svc: x\r\nClear-Site-Data: x\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n"+noContent)
	conn, err := net.Dial("tcp", s.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", s.url.Host)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if h := res.Header; res.StatusCode != http.StatusEarlyHints || h.Get("Link") == "" || h.Get("Set-Cookie") != "a=1" || h.Get("Alt-Svc")+h.Get("Clear-Site-Data")+h.Get("X-Hop")+h.Get("Connection") != "" {
		t.Errorf("%s %v", res.Status, h)
	}
}

// TestAnswersBehindBodiesAreClean: a trailer says no more than a header may.
func TestAnswersBehindBodiesAreClean(t *testing.T) {
	s := newRaw(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Set-Cookie\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=1; Domain=localhost\r\nAlt-Svc: x\r\nUpgrade: h2c\r\n\r\n")
	res, err := s.client.Get(s.url.String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); string(text) != "ok" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if res.Trailer.Get("X-Sum") != "1" || len(res.Trailer) != 1 {
		t.Errorf("the trailer is %v", res.Trailer)
	}
}

// TestMethodsAreTokens: over HTTP/2 a client can say any text as its method and path.
func TestMethodsAreTokens(t *testing.T) {
	s := newRaw(t, noContent)
	conn, err := net.Dial("tcp", s.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	ask := func(stream uint32, method, path string) string {
		t.Helper()
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", method}, {":scheme", "http"}, {":authority", s.url.Host}, {":path", path}} {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if h, ok := frame.(*http2.MetaHeadersFrame); ok && h.StreamID == stream {
				return h.PseudoValue("status")
			}
		}
	}
	if status := ask(1, "GET", "/a b?c d HTTP/1.1"); status != "204" {
		t.Errorf("a path with spaces: %s", status)
	}
	for i, text := range [][2]string{{"GET /admin HTTP/1.1", "/"}, {"GE\tT", "/"}, {"G(T", "/"}, {"GET", "http:evil HTTP/1.1"}} {
		if status := ask(uint32(3+2*i), text[0], text[1]); status != "400" {
			t.Errorf("%q: %s", text, status)
		}
	}
	if got := s.got(); len(got) != 1 || !strings.HasPrefix(got[0], "GET /a%20b?c%20d%20HTTP/1.1 HTTP/1.1\r\n") {
		t.Errorf("the server got %q", got)
	}
}

// TestBodiesAreNoRequests: a server that does not read a body takes it for the next
// request, which must not be on a connection for others.
func TestBodiesAreNoRequests(t *testing.T) {
	s := newRaw(t, noContent)
	for _, method := range []string{"POST", "GET", "PUT"} {
		s.do(t, "GET", s.url.String(), nil, nil)
		s.do(t, method, s.url.String(), nil, strings.NewReader("GET /smuggled HTTP/1.1\r\n"))
		s.do(t, "GET", s.url.String(), nil, nil)
	}
	for _, got := range s.got() {
		if strings.Contains(got, "smuggled") && strings.Count(got, "\r\nHost:") != 1 {
			t.Errorf("behind a body comes a request: %q", got)
		}
	}
	if n := len(s.got()); n != 4 {
		t.Errorf("%d connections, want one for each body and one for the rest", n)
	}
}

// TestStatusesThatAreNone end in a page, not in a panic of the server.
func TestStatusesThatAreNone(t *testing.T) {
	s := newRaw(t, "HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n")
	if res := s.send(t, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n"); res.StatusCode != http.StatusBadGateway {
		t.Error(res.Status)
	}
}

// TestConnectionsEndWithTheirSandbox: what waits for the next request is closed when
// the sandbox falls asleep, and the next request has a connection to the one that woke.
func TestConnectionsEndWithTheirSandbox(t *testing.T) {
	r, gone := liar(t, says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	for range 3 {
		if _, text := r.do(t, "GET", r.url.String(), nil, nil); text != "ok" {
			t.Fatal(text)
		}
		if len(gone) != 0 {
			t.Fatal("the connection is not kept")
		}
		r.restart()
		<-gone
	}
}

// TestStalledUploadsEnd with their preview, although the client says nothing more.
func TestStalledUploadsEnd(t *testing.T) {
	came := make(chan struct{})
	r := newRig(t, func(_ http.ResponseWriter, req *http.Request) {
		close(came)
		_, _ = io.Copy(io.Discard, req.Body)
	})
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nab", r.url.Host)
	<-came
	if err := r.previews.Close(t.Context(), r.id, r.port); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); len(said) != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", said, err)
	}
}
