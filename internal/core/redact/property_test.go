package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// fragments is what random texts are made of: secrets and tokens, whole and in
// parts, their neighbours, and what begins like them.
var (
	testSecrets = []string{"ababab", "abababacab", "correct horse battery", "s3cr3t/+val", "line one of a secret\nline two of a secret"}
	fragments   = func() []string {
		f := []string{
			"eyJ", ".", "eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0", "sk-", "sk-ant-", "sk-atoll-", "Bearer ", "Authorization: Bearer ",
			"-----BEGIN ", "PRIVATE KEY", "-----", "\n-----END ", "AKIA", "ghp_", "SecretAccessKey", "=", "AccountKey=", "xoxb-", "\n", " ", "a", "ab", "\\n",
			long(3), long(9), long(40), "ordinary text, it eats grass\n", "\x00\xff", "%", "%2", "YWJhYg", "the secret is ",
		}
		for _, s := range testSecrets {
			f = append(f, s, s[:len(s)/2], s[len(s)/2:], hex.EncodeToString([]byte(s)), url.QueryEscape(s), base64.StdEncoding.EncodeToString([]byte("x"+s)))
			h := hex.EncodeToString([]byte(s + s))
			f = append(f, h[:18]+"\n"+h[18:], h[:20]+"\\r\\n"+h[20:24]+"\r\n"+h[24:], h[:17]+"\n\n\n\n\n")
		}
		return f
	}()
)

func randomText(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	for range r.IntN(n) {
		b.WriteString(fragments[r.IntN(len(fragments))])
	}
	return b.Bytes()
}

// step is one write to one of two streams.
type step struct {
	stream int
	data   []byte
}

// stepByStep writes single bytes and returns what had come out of both streams
// after each, which every other way of cutting must agree with.
func stepByStep(s *redact.Set, steps []step) (progress [2][]int, out [2]bytes.Buffer) {
	p := s.Pair(func(b []byte) { out[0].Write(b) }, func(b []byte) { out[1].Write(b) })
	for _, st := range steps {
		for i := range st.data {
			p.Write(st.stream, st.data[i:i+1])
			progress[0] = append(progress[0], out[0].Len())
			progress[1] = append(progress[1], out[1].Len())
		}
	}
	p.Flush()
	return progress, out
}

// checkCuts compares every cutting with the one into bytes: output in the end,
// output after each write, and going on from clean points with a new Pair.
func checkCuts(t *testing.T, r *rand.Rand, s *redact.Set, steps []step) {
	t.Helper()
	progress, want := stepByStep(s, steps)
	for range 3 {
		var out [2]bytes.Buffer
		fresh := func() *redact.Pair {
			return s.Pair(func(b []byte) { out[0].Write(b) }, func(b []byte) { out[1].Write(b) })
		}
		p, at := fresh(), 0
		for _, st := range steps {
			for rest := st.data; len(rest) > 0; {
				n := 1 + r.IntN(len(rest))
				p.Write(st.stream, rest[:n])
				rest, at = rest[n:], at+n
				for i := range out {
					if out[i].Len() != progress[i][at-1] {
						t.Fatalf("after %d bytes of %v stream %d had given %d bytes, and %d when written byte by byte", at, steps, i, out[i].Len(), progress[i][at-1])
					}
				}
				if p.Clean() && r.IntN(2) == 0 {
					p = fresh()
				}
			}
		}
		p.Flush()
		for i := range out {
			if !bytes.Equal(out[i].Bytes(), want[i].Bytes()) {
				t.Fatalf("%v\ngave %q\nand byte by byte %q", steps, out[i].Bytes(), want[i].Bytes())
			}
		}
		if p.Pending() != 0 {
			t.Fatalf("%d bytes are held after the end", p.Pending())
		}
	}
}

func TestAnyCutGivesTheSame(t *testing.T) {
	s := set(t, redact.Config{Secrets: testSecrets})
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var steps []step
		for range 1 + r.IntN(6) {
			steps = append(steps, step{r.IntN(2), randomText(r, 12)})
		}
		checkCuts(t, r, s, steps)
	}
}

// With one stream, all that is left of secrets is what no search would find; and
// without any, nothing is changed.
func TestNothingIsLeft(t *testing.T) {
	s := set(t, redact.Config{Secrets: testSecrets, Rules: []string{}})
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		in := randomText(r, 40)
		out := s.Bytes(in)
		var covered [][2]int // by plain search, merged
		for i := range in {
			for _, secret := range testSecrets {
				if bytes.HasPrefix(in[i:], []byte(secret)) {
					covered = append(covered, [2]int{i, i + len(secret)})
				}
			}
		}
		for _, secret := range testSecrets {
			if bytes.Contains(out, []byte(secret)) {
				t.Fatalf("%q\ngave %q, which has %q", in, out, secret)
			}
			for _, form := range []string{hex.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
				if bytes.Contains(out, []byte(form)) {
					t.Fatalf("%q\ngave %q, which has %q", in, out, form)
				}
			}
		}
		if len(covered) == 0 && !bytes.Contains(out, []byte(redact.Marker)) && !bytes.Equal(in, out) {
			t.Fatalf("%q\nbecame %q for no reason", in, out)
		}
	}
}

// What is not held must leave with the write that brought it.
func TestLinesAreNotDelayed(t *testing.T) {
	s := set(t, redact.Config{Secrets: testSecrets})
	for _, line := range []string{
		"hello\n", "progress 10%\n", "the secret is ababac\n", "eyJhbGciOiJIUzI1NiJ9.eyJ\n", "sk-ant-\n", "Authorization: Bearer\n",
		"-----BEGIN CERTIFICATE-----\n", "-----\n", "correct horse\n", "aws_secret_access_key = \n", "prompt> ", "{\"a\": 1}", "100", "\n", "\x00",
	} {
		var out bytes.Buffer
		st := s.Stream(func(b []byte) { out.Write(b) })
		st.Write([]byte(line))
		if out.String() != line || st.Pending() != 0 {
			t.Errorf("of %q only %q came, %d bytes are held", line, out.String(), st.Pending())
		}
	}
}

// However long a token is, little of it is held, and all of it covered.
func TestBoundedHold(t *testing.T) {
	s := set(t, redact.Config{Secrets: []string{strings.Repeat("ab", redact.MaxSecret/2)}})
	for _, c := range []struct{ head, body, want string }{
		{"sk-ant-", long(100), "[redacted:anthropic]"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0", long(100), "[redacted:jwt]"},
		{"Authorization: Bearer ", long(100), "Authorization: Bearer [redacted:bearer]"},
		{"-----BEGIN PRIVATE KEY-----\n", strings.Repeat("x", 63) + "\n", ""},
		{"eyJ", strings.Repeat("eyJ", 30), ""},
		{"x", "-----BEGIN ", ""},
	} {
		var out bytes.Buffer
		st, held := s.Stream(func(b []byte) { out.Write(b) }), 0
		st.Write([]byte(c.head))
		for range 10_000 {
			st.Write([]byte(c.body))
			held = max(held, st.Pending())
		}
		if held > 3*redact.MaxSecret {
			t.Errorf("%d bytes were held after %q", held, c.head)
		}
		st.Flush()
		if c.want != "" && out.String() != c.want {
			t.Errorf("%q gave %d bytes: %.100q", c.head, out.Len(), out.String())
		}
	}
}

func TestTwoStreams(t *testing.T) {
	s := set(t, redact.Config{Secrets: []string{"correct horse battery", "0123456789"}})
	for _, c := range []struct {
		name     string
		steps    []step
		out, err string
	}{
		{"half and half", []step{{0, []byte("a correct horse")}, {1, []byte(" battery b")}}, "a [redacted]", "[redacted] b"},
		{"byte by byte", []step{{0, []byte("0")}, {1, []byte("1")}, {0, []byte("2")}, {1, []byte("345")}, {0, []byte("6")}, {1, []byte("78")}, {0, []byte("9x")}, {1, []byte("y")}}, "[redacted]x", "[redacted]y"},
		{"not the rest", []step{{0, []byte("correct ho")}, {1, []byte("use")}, {0, []byte("rse battery")}}, "[redacted]", "use"},
		{"beginning again", []step{{0, []byte("correct 01234")}, {1, []byte("56789 correct horse")}, {0, []byte(" battery")}}, "correct [redacted][redacted]", "[redacted] [redacted]"},
		{"in one, then over both", []step{{0, []byte("0123456789 01234567")}, {1, []byte("89")}}, "[redacted] [redacted]", "[redacted]"},
		{"lines between", []step{{0, []byte("01234\n")}, {1, []byte("56789\n")}}, "01234\n", "56789\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out [2]bytes.Buffer
			p := s.Pair(func(b []byte) { out[0].Write(b) }, func(b []byte) { out[1].Write(b) })
			for _, st := range c.steps {
				p.Write(st.stream, st.data)
			}
			p.Flush()
			if out[0].String() != c.out || out[1].String() != c.err {
				t.Errorf("got %q and %q, want %q and %q", out[0].String(), out[1].String(), c.out, c.err)
			}
			checkCuts(t, rand.New(rand.NewPCG(5, 6)), s, c.steps)
		})
	}
}

// A line on one stream waits for nothing on the other that it does not go on.
func TestStreamsDoNotWait(t *testing.T) {
	s := set(t, redact.Config{Secrets: []string{"correct horse battery"}})
	var out [2]bytes.Buffer
	p := s.Pair(func(b []byte) { out[0].Write(b) }, func(b []byte) { out[1].Write(b) })
	p.Write(redact.Stdout, []byte("correct ho"))
	p.Write(redact.Stderr, []byte("warning\n"))
	if out[1].String() != "warning\n" || p.Pending() != len("correct ho") {
		t.Errorf("%q came, %d are held", out[1].String(), p.Pending())
	}
	p.Write(redact.Stderr, []byte("rse b\n"))
	if out[1].String() != "warning\nrse b\n" {
		t.Errorf("%q came", out[1].String())
	}
}

func FuzzCuts(f *testing.F) {
	s := set(f, redact.Config{Secrets: testSecrets})
	for _, text := range fragments {
		f.Add([]byte(text), []byte("it "+text), uint64(1))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var steps []step
		for len(a)+len(b) > 0 {
			n := r.IntN(len(a) + 1)
			steps = append(steps, step{0, a[:n]})
			m := r.IntN(len(b) + 1)
			steps = append(steps, step{1, b[:m]})
			a, b = a[n:], b[m:]
		}
		checkCuts(t, r, s, steps)
	})
}

// Whatever is asked to be covered is gone, in the clear and in its encodings.
func FuzzSecret(f *testing.F) {
	f.Add("hunter2", []byte("the "), []byte(" end"))
	f.Add("a\nb\\c\"d", []byte{0}, []byte{0xff})
	f.Fuzz(func(t *testing.T, secret string, before, after []byte) {
		s, err := redact.New(redact.Config{Secrets: []string{secret}, Rules: []string{}})
		v := strings.TrimSpace(secret)
		if err != nil || strings.Contains(redact.Marker, v) {
			return // not a secret that can be registered, or a part of the marker
		}
		forms := []string{v, hex.EncodeToString([]byte(v)), url.QueryEscape(v)}
		if len(v) <= 512 { // longer ones are looked for in fewer
			forms = append(forms, url.PathEscape(v), html.EscapeString(v))
		}
		forms = append(forms, strings.ReplaceAll(v, "'", `'"'"'`), strings.ReplaceAll(html.EscapeString(v), "&#39;", "&#x27;"))
		forms[len(forms)-1] = strings.ReplaceAll(forms[len(forms)-1], "&#34;", "&quot;")
		for _, form := range forms {
			in := append(append(bytes.Clone(before), form...), after...)
			if out := s.Bytes(in); !bytes.Contains(out, []byte(redact.Marker)) {
				t.Fatalf("%q with %q gave %q", in, secret, out)
			}
		}
	})
}

// However an encoding is broken into lines, most of a secret is gone.
func FuzzWrapped(f *testing.F) {
	f.Add("correct horse battery", uint8(2), uint8(1), uint8(60))
	f.Add("correct horse battery", uint8(0), uint8(17), uint8(5))
	f.Fuzz(func(t *testing.T, secret string, lead, first, width uint8) {
		s, err := redact.New(redact.Config{Secrets: []string{secret}, Rules: []string{}})
		v := strings.TrimSpace(secret)
		if err != nil || len(v) < 12 || width < 4 {
			return // shorter ones have few characters of their own
		}
		for name, encoded := range map[string]string{
			"base64": base64.StdEncoding.EncodeToString([]byte("xy"[:lead%3] + v)), "hex": hex.EncodeToString([]byte(v)),
		} {
			at := min(int(first), len(encoded))
			in := encoded[:at]
			for rest := encoded[at:]; rest != ""; rest = rest[min(int(width), len(rest)):] {
				in += "\n" + rest[:min(int(width), len(rest))]
			}
			if out := string(s.Bytes([]byte(in))); !strings.Contains(out, redact.Marker) {
				t.Fatalf("%s of %q, a line after %d and then every %d: %q", name, v, first, width, out)
			}
		}
	})
}

func (s step) String() string { return fmt.Sprintf("%d:%q", s.stream, s.data) }
