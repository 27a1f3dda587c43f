package sniff

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	for in, want := range map[string]Kind{
		"":                                   More,
		"\x16":                               More,
		"\x16\x03":                           More,
		"\x16\x03\x01":                       TLS,
		"\x16\x02\x01":                       Other,
		"G":                                  More,
		"GET / HTTP/1.1":                     More,
		"GET / HTTP/1.1\r\n":                 HTTP,
		"get / http/1.1\n":                   HTTP,
		"X-Y\t/\tHTTP/9\r\n":                 HTTP,
		"\r\n \tGET / HTTP/1.1\r\n":          HTTP,
		"GET /\r\n":                          HTTP,
		"GET http://x\r\n":                   HTTP,
		"PRI * HTTP/2.0\r\n":                 HTTP2,
		"\r\nPRI * HTTP/2.0\r\n":             HTTP,
		"EHLO me\r\n":                        Other,
		"QUIT\r\n":                           Other,
		"SSH-2.0-OpenSSH_9\r\n":              Other,
		"\x00\x00\x00\x08\x04\xd2\x16\x2f":   Other,
		"*1\r\n$4\r\nPING\r\n":               Other,
		"\x00\x00\x00\x41\x00\x12":           Other,
		"\x05\x01\x00":                       Other,
		"{\"hello\":1}":                      Other,
		"one two three\n":                    Other,
		strings.Repeat("A", 25):              More,
		strings.Repeat("A", 64<<10):          HTTP,
		strings.Repeat("\n", 65):             More,
		strings.Repeat("\n", 64<<10):         HTTP,
		"GET " + strings.Repeat("x", 64<<10): HTTP,
		// What lenient servers answer.
		strings.Repeat("\r\n", 40) + "GET / HTTP/1.1\r\n": HTTP,
		strings.Repeat("A", 100) + " / HTTP/1.1\r\n":      HTTP,
		"\x0bGET / HTTP/1.1\r\n":                          HTTP,
		"\x0c\x1c\x85\xa0GET\x1d/\xa0HTTP/1.1\r\n":        HTTP,
		"GET x HTTP/1.1\rHost: good.test\r\n":             HTTP,
	} {
		if got := Classify([]byte(in)); got != want {
			t.Errorf("%.40q is %d, not %d", in, got, want)
		}
	}
}

// first is what Go's client says first.
func first(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer b.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(a, cfg).Handshake()
	}()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	<-done
	return buf[:n]
}

func TestParseHello(t *testing.T) {
	b := first(t, &tls.Config{ServerName: "good.test"})
	for i := range b {
		if _, err := ParseHello(b[:i]); !errors.Is(err, ErrShort) {
			t.Fatalf("after %d bytes: %v", i, err)
		}
	}
	if h, err := ParseHello(append(b, "more"...)); err != nil || h.ServerName != "good.test" || h.Encrypted {
		t.Errorf("got %+v, %v", h, err)
	}
	b = first(t, &tls.Config{ServerName: "127.0.0.1"})
	if h, err := ParseHello(b); err != nil || h.ServerName != "" {
		t.Errorf("got %+v, %v", h, err)
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add(first(f, &tls.Config{ServerName: "good.test"}), 7)
	f.Add(first(f, &tls.Config{ServerName: "good.test"}), 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, err := ParseHello(b)
		if err != nil {
			return
		}
		// More bytes change nothing, and fewer are too few or the same.
		if again, err := ParseHello(append(b[:len(b):len(b)], 23, 3, 3)); err != nil || again != whole {
			t.Errorf("got %+v, then %+v, %v", whole, again, err)
		}
		if cut = cut % (len(b) + 1); cut >= 0 {
			if part, err := ParseHello(b[:cut]); err == nil && part != whole || err != nil && !errors.Is(err, ErrShort) {
				t.Errorf("of %d bytes %d are %+v, %v", len(b), cut, part, err)
			}
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n"), []byte("Host: x\r\n"))
	f.Add([]byte("\x16\x03\x01"), []byte("x"))
	f.Fuzz(func(t *testing.T, b, more []byte) {
		// What has been told once stays.
		if k := Classify(b); k != More && Classify(append(b[:len(b):len(b)], more...)) != k {
			t.Errorf("%q is %d, and another with %q", b, k, more)
		}
	})
}

func FuzzNextRecord(f *testing.F) {
	f.Add([]byte("\x17\x03\x03\x00\x01x"))
	f.Add(retryRandom)
	f.Fuzz(func(t *testing.T, b []byte) {
		if step, size := NextRecord(b); step == Pass && (size > len(b) || size < recordHead || b[0] == recordHandshake) {
			t.Errorf("%q is passed on with %d bytes", b, size)
		}
		if retry, known := Retry(b); retry && !known {
			t.Errorf("%q is unclear", b)
		}
	})
}
