package preview_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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
	if res, _ := r.do(t, "GET", r.url.String(), map[string]string{"Connection": "Upgrade", "Upgrade": "echo"}, nil); res.StatusCode != http.StatusBadGateway {
		t.Error(res.Status)
	}
	<-gone
	// With a body no server could tell where the other protocol begins.
	r, gone = liar(t, says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"))
	if res, _ := r.do(t, "POST", r.url.String(), map[string]string{"Connection": "Upgrade", "Upgrade": "echo"}, strings.NewReader("GET / HTTP/1.1\r\n\r\n")); res.StatusCode != http.StatusBadGateway {
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
