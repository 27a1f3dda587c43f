package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
)

// act is a program of this process.
type act struct {
	out    *io.PipeReader
	in     *io.PipeWriter
	lines  *bufio.Reader
	closed *atomic.Int64
}

// acts starts an act for each Command, which says something to each line that it reads.
type acts struct {
	say             func(start int64, method string, id json.RawMessage, say func(string)) (ends bool)
	started, closed atomic.Int64
}

func (a *acts) Start(context.Context, *Command) (Program, error) {
	n := a.started.Add(1)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &act{out: outR, in: inW, lines: bufio.NewReader(outR), closed: &a.closed}
	go func() {
		defer outW.Close()
		defer inR.Close()
		in := bufio.NewScanner(inR)
		for in.Scan() {
			var q struct {
				Method string
				ID     json.RawMessage
			}
			_ = json.Unmarshal(in.Bytes(), &q)
			if a.say(n, q.Method, q.ID, func(line string) { fmt.Fprintln(outW, line) }) {
				return
			}
		}
	}()
	return p, nil
}

func (p *act) Write(_ context.Context, line []byte) error { _, err := p.in.Write(line); return err }

func (p *act) Read(most int) ([]byte, error) {
	var line []byte
	for {
		piece, more, err := p.lines.ReadLine()
		if err != nil {
			return nil, errors.New("it ended with exit code 3: the last words")
		}
		if line = append(line, piece...); len(line) > most {
			return nil, ErrLine
		}
		if !more {
			return bytes.Clone(line), nil
		}
	}
}

func (p *act) Close() error {
	p.closed.Add(1)
	return errors.Join(p.out.Close(), p.in.Close())
}

func reply(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// honest is a server with one tool.
func honest(method string, id json.RawMessage, say func(string)) {
	switch method {
	case "initialize":
		say(reply(id, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`))
	case "tools/list":
		say(reply(id, `{"tools":[{"name":"add","description":"Adds. The key is sk-secret-value.","inputSchema":{"type":"object"}}]}`))
	case "tools/call":
		say(reply(id, `{"content":[{"type":"text","text":"42 sk-secret-value"}]}`))
	default:
		if len(id) > 0 {
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, id))
		}
	}
}

func clientOf(t *testing.T, a *acts) (*Client, Target) {
	t.Helper()
	c := New(outbound.List{}, "test")
	c.StartBy(a)
	t.Cleanup(func() {
		c.Close()
		if s, e := a.started.Load(), a.closed.Load(); s != e {
			t.Errorf("%d programs were started and %d ended", s, e)
		}
	})
	return c, Target{Command: &Command{Session: "s", Argv: []string{"server"}, Env: map[string]string{"KEY": "sk-secret-value"}}}
}

func TestPrograms(t *testing.T) {
	a := &acts{say: func(start int64, method string, id json.RawMessage, say func(string)) bool {
		if method == "tools/list" { // and what is no answer
			say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			say("")
		}
		honest(method, id, say)
		return start == 1 && method == "tools/call" // it ends after its first call
	}}
	c, to := clientOf(t, a)
	found, err := c.List(t.Context(), "run/one", to, func(string, bool) bool { return true })
	if err != nil || len(found) != 1 || found[0].Name != "add" || strings.Contains(found[0].Description, "secret") {
		t.Fatalf("%+v, %v", found, err)
	}
	for range 3 {
		r, err := c.Call(t.Context(), "run/one", to, &run.RemoteTool{Name: "add"}, json.RawMessage(`{}`))
		if err != nil || r.Text != "42 [covered]" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n := a.started.Load(); n != 2 {
		t.Errorf("it was started %d times", n)
	}
}

// TestHostilePrograms: for each way in which a program misbehaves, a call comes to an end that says why.
func TestHostilePrograms(t *testing.T) {
	flood := func(line string) func(string, json.RawMessage, func(string)) bool {
		return func(_ string, _ json.RawMessage, say func(string)) bool {
			for range 3000 {
				say(line)
			}
			return false
		}
	}
	for name, test := range map[string]struct {
		at   string // the method at which it does something else
		do   func(method string, id json.RawMessage, say func(string)) (ends bool)
		says string
	}{
		"no JSON":       {"tools/call", func(_ string, _ json.RawMessage, say func(string)) bool { say("Listening…"); return false }, "not MCP"},
		"no JSON first": {"initialize", func(_ string, _ json.RawMessage, say func(string)) bool { say("Listening…"); return false }, "not MCP"},
		"a huge line": {"tools/call", func(_ string, _ json.RawMessage, say func(string)) bool {
			say(strings.Repeat("x", maxBody+1))
			return false
		}, "too long"},
		"many lines": {"tools/call", flood(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`), "too many"},
		"many elements": {"tools/call", func(_ string, _ json.RawMessage, say func(string)) bool {
			say(`{"jsonrpc":"2.0","id":3,"result":{"content":[` + strings.Repeat("{},", 1<<20) + `{}]}}`)
			return false
		}, "too large"},
		"large lines":    {"tools/call", flood(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 100<<10) + `"}}`), "too large"},
		"an end":         {"tools/call", func(string, json.RawMessage, func(string)) bool { return true }, "exit code 3"},
		"an end at once": {"initialize", func(string, json.RawMessage, func(string)) bool { return true }, "exit code 3"},
		"another's id": {"tools/call", func(_ string, _ json.RawMessage, say func(string)) bool {
			say(reply(json.RawMessage("999"), "{}"))
			return true
		}, "exit code 3"},
		"no answer": {"tools/call", func(string, json.RawMessage, func(string)) bool { return false }, "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &acts{say: func(_ int64, method string, id json.RawMessage, say func(string)) bool {
				if method == test.at {
					return test.do(method, id, say)
				}
				honest(method, id, say)
				return false
			}}
			c, to := clientOf(t, a)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if name == "no answer" {
				said := a.say
				a.say = func(n int64, method string, id json.RawMessage, say func(string)) bool {
					if method == test.at {
						cancel(errors.New("cut off"))
					}
					return said(n, method, id, say)
				}
			}
			_, err := c.Call(ctx, "run/one", to, &run.RemoteTool{Name: "add"}, json.RawMessage(`{}`))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if asked := test.at == "tools/call"; ctx.Err() == nil && errors.Is(err, ErrUnknown) != asked {
				t.Errorf("whether it was done is said to be unknown: %v", errors.Is(err, ErrUnknown))
			}
		})
	}
}

// TestOtherCommand: a session under the same name whose command is another one is not used.
func TestOtherCommand(t *testing.T) {
	a := &acts{say: func(_ int64, method string, id json.RawMessage, say func(string)) bool {
		honest(method, id, say)
		return false
	}}
	c, to := clientOf(t, a)
	other, same := to, to
	other.Command = &Command{Session: "s", Argv: []string{"server", "-v"}, Env: to.Command.Env}
	same.Command = &Command{Session: "s", Argv: []string{"server"}, Env: to.Command.Env}
	for i, step := range []struct {
		to      Target
		started int64
	}{{to, 1}, {same, 1}, {other, 2}, {other, 2}, {to, 3}} {
		if _, err := c.Call(t.Context(), "run/one", step.to, &run.RemoteTool{Name: "add"}, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		if n := a.started.Load(); n != step.started {
			t.Errorf("after call %d it was started %d times, want %d", i, n, step.started)
		}
	}
}

// slow is a Program that takes a line when it is let.
type slow struct {
	Program
	entered chan struct{}
	leave   chan error
}

func (s *slow) Write(context.Context, []byte) error {
	s.entered <- struct{}{}
	return <-s.leave
}

// TestWrites: lines are written one after the other, and none behind a part of one.
func TestWrites(t *testing.T) {
	s := &slow{entered: make(chan struct{}, 2), leave: make(chan error)}
	p := &program{Program: s, writing: make(chan struct{}, 1)}
	m := &jsonrpc.Request{Method: "ping"}
	first := make(chan error, 1)
	go func() { first <- p.Write(t.Context(), m) }()
	<-s.entered
	impatient, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := p.Write(impatient, m); !errors.Is(err, gone) || p.why.Load() != nil {
		t.Errorf("while another is written: %v", err)
	}
	second := make(chan error, 1)
	go func() { second <- p.Write(t.Context(), m) }()
	cut := errors.New("cut off")
	s.leave <- cut
	for _, got := range []chan error{first, second} {
		if err := <-got; !errors.Is(err, cut) {
			t.Errorf("%v, want %v", err, cut)
		}
	}
	if len(s.entered) > 0 {
		t.Error("a line was written behind a part of one")
	}
}
