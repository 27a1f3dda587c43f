package daemonclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/liar"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

func lie(t testing.TB, say func(*proto.Conn)) *Client {
	t.Helper()
	l := liar.New(t, say)
	c, err := Dial(t.Context(), l.Folder, l.Come)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// everything asks for all there is.
func everything(ctx context.Context, c *Client) map[string]error {
	output := func(o process.Output, err error) error {
		for err == nil {
			_, err = o.Next()
		}
		if o != nil {
			o.Close()
		}
		return err
	}
	drain := func(r io.ReadCloser, err error) error {
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		return err
	}
	all := map[string]error{}
	_, all["start"] = c.Start(ctx, process.Spec{Argv: []string{"x"}})
	all["run"] = output(c.Run(ctx, process.Spec{Argv: []string{"x"}}))
	all["follow"] = output(c.Follow(ctx, "x", 0))
	all["converse"] = output(c.Converse(ctx, "x", []byte("1"), 0))
	_, all["processes"] = c.Processes(ctx)
	_, all["process"] = c.Process(ctx, "x")
	_, all["wait"] = c.Wait(ctx, "x")
	_, all["write"] = c.Write(ctx, "x", []byte("data"))
	_, all["stat"] = c.Stat(ctx, "x")
	_, all["list"] = c.List(ctx, "x", file.ListOptions{Limit: 2})
	_, all["glob"] = c.Glob(ctx, "x", "*", 2)
	_, r, err := c.Read(ctx, "x", 0, 5)
	all["read"] = drain(r, err)
	_, all["create"] = c.Create(ctx, "x", file.CreateOptions{}, strings.NewReader("data"))
	a, err := c.Pack(ctx, "x")
	if err == nil {
		err = drain(a, nil)
	}
	all["pack"] = err
	_, all["unpack"] = c.Unpack(ctx, "x", strings.NewReader("data"))
	all["adopt"] = c.Adopt(ctx, "x", func(context.Context, string) error { return nil })
	w, err := c.Watch(ctx, "x", false)
	for err == nil {
		_, err = w.Next()
	}
	if w != nil {
		w.Close()
	}
	all["watch"] = err
	conn, err := c.Connect(ctx, 1, 0)
	if err == nil {
		conn.Close()
	}
	all["connect"] = err
	return all
}

// TestLies: what no guest daemon says ends the conversation, with ErrProtocol.
func TestLies(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	answer := func(text string) []byte { return frame(proto.Answer, text) }
	process := `{"process":{"id":"x","pid":2,"argv":[],"written":[0,0,0,0]}}`
	file := `{"file":{"path":"eA==","kind":"file","size":1,"mode":420}}`
	output := func(stream byte, at, dropped int64, text string) []byte {
		b := make([]byte, proto.OutputSize+len(text))
		proto.PutOutput(b, stream, at, dropped)
		copy(b[proto.OutputSize:], text)
		return frame(proto.Output, string(b))
	}
	end := func(text string) []byte { return frame(proto.End, text) }
	ask := map[string]func(context.Context, *Client) error{}
	for _, name := range []string{"run", "wait", "list", "glob", "read", "create", "pack", "watch", "stat", "processes", "converse", "adopt"} {
		ask[name] = func(ctx context.Context, c *Client) error { return one(ctx, c, name) }
	}
	ask["enough"] = func(ctx context.Context, c *Client) error {
		o, err := c.Converse(ctx, "x", nil, 0)
		if err != nil {
			return err
		}
		o.Enough()
		<-c.Done()
		return c.failure()
	}
	for name, try := range map[string]struct {
		ask  string
		lies [][]byte
	}{
		"no frame":             {"stat", [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\n")}},
		"a huge frame":         {"stat", [][]byte{{0xff, 0xff, 0xff, 0x7f, byte(proto.Answer)}}},
		"no JSON":              {"stat", [][]byte{answer("{")}},
		"another type":         {"stat", [][]byte{frame(proto.Data, "x")}},
		"no file":              {"stat", [][]byte{answer("{}")}},
		"a size below zero":    {"stat", [][]byte{answer(`{"file":{"kind":"file","size":-1}}`)}},
		"an unknown kind":      {"stat", [][]byte{answer(`{"file":{"kind":"ghost"}}`)}},
		"more behind it":       {"stat", [][]byte{append(answer(file), 'x')}},
		"too many files":       {"list", [][]byte{answer(`{"files":[` + strings.Repeat(`{"kind":"file"},`, 3) + `{"kind":"file"}]}`)}},
		"too many paths":       {"glob", [][]byte{answer(`{"paths":["eA==","eA==","eA=="]}`)}},
		"an empty path":        {"glob", [][]byte{answer(`{"paths":[""]}`)}},
		"more than asked for":  {"read", [][]byte{answer(file), frame(proto.Data, "123456")}},
		"an empty piece":       {"read", [][]byte{answer(file), frame(proto.Data, "")}},
		"output as content":    {"read", [][]byte{answer(file), output(0, 0, 0, "x")}},
		"a negative size":      {"create", [][]byte{answer(`{"size":-5}`)}},
		"negative counts":      {"pack", [][]byte{answer(`{}`), end(`{"files":-1}`)}},
		"no process":           {"run", [][]byte{answer(`{}`)}},
		"an odd process":       {"run", [][]byte{answer(`{"process":{"id":"x","first":5,"last":4}}`)}},
		"negative output":      {"run", [][]byte{answer(`{"process":{"id":"x","written":[-1,0,0,0]}}`)}},
		"a gap in output":      {"run", [][]byte{answer(process), output(0, 5, 0, "x")}},
		"output again":         {"run", [][]byte{answer(process), output(0, 0, 0, "xy"), output(0, 1, 0, "x")}},
		"a stream that is not": {"run", [][]byte{answer(process), output(9, 0, 0, "x")}},
		"nothing as output":    {"run", [][]byte{answer(process), output(0, 0, 0, "")}},
		"far output":           {"run", [][]byte{answer(process), output(0, 1<<62, 1<<62, "x")}},
		"no end":               {"run", [][]byte{answer(process), end(`{}`)}},
		"an odd end":           {"run", [][]byte{answer(process), end(`{"exit":{"code":4711}}`)}},
		"enough for nothing":   {"converse", [][]byte{answer(process), end(`{}`)}},
		"an answer to enough":  {"enough", [][]byte{answer(process), answer(process)}},
		"never enough":         {"enough", [][]byte{answer(process), bytes.Repeat(output(0, 0, 0, strings.Repeat("x", 1000)), 2200)}},
		"no end to wait for":   {"wait", [][]byte{answer(process)}},
		"no place":             {"adopt", [][]byte{answer(`{}`)}},
		"adopted ahead":        {"adopt", [][]byte{answer(`{"paths":["eA=="]}`), end(`{}`)}},
		"no changes":           {"watch", [][]byte{answer(`{}`), frame(proto.Change, `[]`)}},
		"an unknown change":    {"watch", [][]byte{answer(`{}`), frame(proto.Change, `[{"change":"x"}]`)}},
		"many processes":       {"processes", [][]byte{answer(`{"processes":[` + strings.TrimSuffix(strings.Repeat(`{"id":"x"},`, 2*MaxProcesses+1), ",") + `]}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := lie(t, func(conn *proto.Conn) {
				if _, err := conn.Next(); err == nil {
					conn.Transport.Write(bytes.Join(try.lies, nil))
					io.Copy(io.Discard, conn.Transport)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := ask[try.ask](ctx, c)
			<-c.Done()
			if name == "more behind it" { // which shows only when the next begins
				err = c.failure()
			}
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("got %v", err)
			}
			if err := c.failure(); !errors.Is(err, ErrProtocol) {
				t.Errorf("it is over because of %v", err)
			}
			if _, err := c.Stat(ctx, "x"); !errors.Is(err, ErrProtocol) {
				t.Errorf("afterwards: %v", err)
			}
			c.Close()
		})
	}
}

// one asks for one thing.
func one(ctx context.Context, c *Client, name string) error {
	switch name {
	case "run":
		o, err := c.Run(ctx, process.Spec{Argv: []string{"x"}})
		for err == nil {
			_, err = o.Next()
		}
		return err
	case "adopt":
		return c.Adopt(ctx, "x", func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) })
	case "wait":
		_, err := c.Wait(ctx, "x")
		return err
	case "list":
		_, err := c.List(ctx, "x", file.ListOptions{Limit: 2})
		return err
	case "glob":
		_, err := c.Glob(ctx, "x", "*", 2)
		return err
	case "read":
		_, r, err := c.Read(ctx, "x", 0, 5)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		return err
	case "create":
		_, err := c.Create(ctx, "x", file.CreateOptions{}, strings.NewReader("data"))
		return err
	case "pack":
		a, err := c.Pack(ctx, "x")
		if err == nil {
			_, err = io.Copy(io.Discard, a)
		}
		return err
	case "watch":
		w, err := c.Watch(ctx, "x", false)
		for err == nil {
			_, err = w.Next()
		}
		return err
	case "processes":
		_, err := c.Processes(ctx)
		return err
	}
	_, err := c.Stat(ctx, "x")
	return err
}

func frame(t proto.Type, text string) []byte {
	n := len(text)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(t)}, text...)
}

// TestRefusalsAreClean: a guest daemon's words reach the caller as text, and no more
// of them than fits.
func TestRefusalsAreClean(t *testing.T) {
	text, err := json.Marshal(proto.Reply{Error: &proto.Error{Reason: "nonsense", Text: "a\x1b[31m\n\xff" + strings.Repeat("x", 5000)}})
	if err != nil {
		t.Fatal(err)
	}
	c := lie(t, func(conn *proto.Conn) {
		for {
			if _, err := conn.Next(); err != nil {
				return
			}
			conn.Transport.Write(frame(proto.Answer, string(text)))
		}
	})
	for range 3 {
		_, err := c.Stat(t.Context(), "x")
		if err == nil || fault.KindOf(err) != fault.Conflict || strings.ContainsAny(err.Error(), "\x1b\n") || !utf8.ValidString(err.Error()) || len(err.Error()) > 3*maxText {
			t.Fatalf("got %.200q", err)
		}
	}
}

// TestUninvited: connections that were not asked for end the conversation, whether
// they greet or not. None of them is waited for.
func TestUninvited(t *testing.T) {
	for _, greets := range []bool{true, false} {
		l := liar.New(t, func(*proto.Conn) {})
		c, err := Dial(t.Context(), l.Folder, l.Come)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 100 {
			var conn net.Conn
			if greets {
				var p *proto.Conn
				if p, err = l.Dial(false); err == nil {
					conn = p.Transport.(net.Conn)
				}
			} else {
				conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(l.Folder, "host")})
			}
			if err == nil {
				defer conn.Close()
			}
		}
		<-c.Done()
		if err := c.failure(); !errors.Is(err, ErrProtocol) || time.Since(began) >= goodbye {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		c.Close()
		if c.greeting > 0 {
			t.Errorf("%d were waited for", c.greeting)
		}
	}
}

// FuzzLies: whatever a guest daemon says, each question has an end, and nothing of
// it is left.
func FuzzLies(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(frame(proto.Answer, "{}"))
	f.Add(append(frame(proto.Answer, `{"process":{"id":"x"}}`), frame(proto.End, `{"exit":{"code":0}}`)...))
	f.Add(append(frame(proto.Answer, `{"file":{"kind":"file"}}`), append(frame(proto.Data, "12345"), frame(proto.End, "{}")...)...))
	f.Add(append(frame(proto.Answer, `{}`), frame(proto.Change, `[{"change":"lost"}]`)...))
	f.Add([]byte{0, 0, 0x80, 0, byte(proto.Answer), '{'})
	f.Fuzz(func(t *testing.T, lies []byte) {
		l := liar.New(t, func(conn *proto.Conn) {
			for {
				if _, err := conn.Next(); err != nil {
					return
				}
				if _, err := conn.Transport.Write(lies); err != nil {
					return
				}
				conn.Transport.(*net.UnixConn).CloseWrite()
			}
		})
		c, err := Dial(t.Context(), l.Folder, l.Come)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for name, err := range everything(ctx, c) {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s has no end", name)
			}
		}
		c.Close()
		if n := len(c.all); n > 0 {
			t.Error(fmt.Sprint(n) + " connections are left")
		}
	})
}
