package daemonclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/liar"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// Patiences of which tests see the end, and late is when it has come. The second has
// enough for a guest that does answer, on a busy machine, too.
var (
	hurried = Timeouts{Silence: 50 * time.Millisecond, Work: 70 * time.Millisecond, Pulse: time.Hour}
	calm    = Timeouts{Silence: 500 * time.Millisecond, Work: 500 * time.Millisecond, Pulse: 500 * time.Millisecond}
)

// late is how long a slow client takes: longer than it waits for a guest.
func late(p Timeouts) time.Duration { return p.Silence * 7 / 5 }

// patiently tries again with twice the patience while the guest is found silent: on a
// busy machine it may be late with what it says. Signs of life it may always be late with.
func patiently(t *testing.T, try func(p Timeouts) error) {
	t.Helper()
	for silence := 500 * time.Millisecond; ; silence *= 2 {
		err := try(Timeouts{Silence: silence, Work: silence, Pulse: silence / 10, Sign: time.Minute})
		if err == nil {
			return
		}
		if !errors.Is(err, ErrSilent) || silence > 10*time.Second {
			t.Fatalf("after %v: %v", silence, err)
		}
	}
}

const (
	aProcess = `{"process":{"id":"x","pid":2,"argv":[],"written":[0,0,0,0]}}`
	aFile    = `{"file":{"path":"eA==","kind":"file","size":5,"mode":420}}`
	anExit   = `{"exit":{"code":0}}`
)

// hush is a conversation with a guest daemon that says what say does about each request
// but those for a sign of life. Those it hears, and answers if it is alive.
type hush struct {
	*Client
	pulses chan bool     // one for each sign of life that was asked for
	over   chan struct{} // closed with the test
}

func newHush(t *testing.T, p Timeouts, alive bool, say func(h *hush, conn *proto.Conn)) *hush {
	t.Helper()
	before, open := goleak.IgnoreCurrent(), handles(t)
	h := &hush{pulses: make(chan bool, 1000), over: make(chan struct{})}
	l := liar.New(t, func(conn *proto.Conn) {
		for {
			kind, err := conn.Next()
			var q proto.Request
			if err != nil || kind != proto.Ask || conn.Decode(&q) != nil {
				return
			}
			switch {
			case q.Process == nil || q.Process.ID != noProcess:
				say(h, conn)
				return
			case !alive:
				h.pulses <- false
				<-h.over
				return
			}
			h.pulses <- true
			if conn.Encode(proto.Answer, proto.Reply{Error: &proto.Error{Reason: proto.Missing}}) != nil || conn.Flush() != nil {
				return
			}
		}
	})
	c, err := p.Dial(t.Context(), l.Folder, l.Come)
	if err != nil {
		t.Fatal(err)
	}
	h.Client = c
	t.Cleanup(func() {
		close(h.over)
		c.Close()
		goleak.VerifyNone(t, before)
		if now := handles(t); now > open {
			t.Errorf("%d handles are open, %d were", now, open)
		}
	})
	return h
}

// handles counts what this process has open.
func handles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// lines sends frames.
func lines(conn *proto.Conn, frames ...[]byte) bool {
	_, err := conn.Transport.Write(bytes.Join(frames, nil))
	return err == nil
}

// trickle sends text a byte at a time, more often than there could be silence.
func trickle(h *hush, conn *proto.Conn, text []byte) {
	tick := time.NewTicker(hurried.Silence / 5)
	defer tick.Stop()
	for len(text) > 0 {
		select {
		case <-tick.C:
		case <-h.over:
			return
		}
		if !lines(conn, text[:1]) {
			return
		}
		text = text[1:]
	}
}

// questions ask for one thing each, and return when all of it has come.
var questions = map[string]func(context.Context, *Client) error{
	"start": func(ctx context.Context, c *Client) error {
		_, err := c.Start(ctx, process.Spec{Shell: "x"})
		return err
	},
	"processes": func(ctx context.Context, c *Client) error { _, err := c.Processes(ctx); return err },
	"process":   func(ctx context.Context, c *Client) error { _, err := c.Process(ctx, "x"); return err },
	"close":     func(ctx context.Context, c *Client) error { return c.CloseInput(ctx, "x") },
	"resize": func(ctx context.Context, c *Client) error {
		return c.Resize(ctx, "x", process.Size{Rows: 1, Columns: 1})
	},
	"signal":   func(ctx context.Context, c *Client) error { return c.Signal(ctx, "x", 15, true) },
	"kill":     func(ctx context.Context, c *Client) error { return c.Kill(ctx, "x") },
	"kill all": func(ctx context.Context, c *Client) error { return c.KillAll(ctx) },
	"end largest": func(ctx context.Context, c *Client) error {
		_, err := c.EndLargest(ctx)
		return err
	},
	"forget":  func(ctx context.Context, c *Client) error { return c.Forget(ctx, "x") },
	"discard": func(ctx context.Context, c *Client) error { return c.Discard(ctx, "x") },
	"stat":    func(ctx context.Context, c *Client) error { _, err := c.Stat(ctx, "x"); return err },
	"list":    func(ctx context.Context, c *Client) error { _, err := c.List(ctx, "x", file.ListOptions{}); return err },
	"glob":    func(ctx context.Context, c *Client) error { _, err := c.Glob(ctx, "x", "*", 0); return err },
	"mkdir":   func(ctx context.Context, c *Client) error { return c.Mkdir(ctx, "x") },
	"remove":  func(ctx context.Context, c *Client) error { return c.Remove(ctx, "x", true) },
	"move":    func(ctx context.Context, c *Client) error { return c.Move(ctx, "x", "y", true) },
	"read": func(ctx context.Context, c *Client) error {
		_, r, err := c.Read(ctx, "x", 0, -1)
		return drained(r, err)
	},
	"pack": func(ctx context.Context, c *Client) error {
		a, err := c.Pack(ctx, "x")
		return drained(a, err)
	},
	"create": func(ctx context.Context, c *Client) error {
		_, err := c.Create(ctx, "x", file.CreateOptions{}, strings.NewReader(strings.Repeat("x", 8<<20)))
		return err
	},
	"unpack": func(ctx context.Context, c *Client) error {
		_, err := c.Unpack(ctx, "x", strings.NewReader(strings.Repeat("x", 8<<20)))
		return err
	},
	"whole": func(ctx context.Context, c *Client) error { _, err := c.Whole(ctx, "x"); return err },
	"wait":  func(ctx context.Context, c *Client) error { _, err := c.Wait(ctx, "x"); return err },
	"write": func(ctx context.Context, c *Client) error { _, err := c.Write(ctx, "x", []byte("data")); return err },
	"run": func(ctx context.Context, c *Client) error {
		return followed(c.Run(ctx, process.Spec{Shell: "x"}))
	},
	"follow": func(ctx context.Context, c *Client) error {
		return followed(c.Follow(ctx, "x", 0))
	},
	"converse": func(ctx context.Context, c *Client) error {
		return followed(c.Converse(ctx, "x", nil, 0))
	},
	"watch": func(ctx context.Context, c *Client) error {
		e, err := c.Watch(ctx, "x", true)
		if err != nil {
			return err
		}
		defer e.Close()
		_, err = e.Next()
		return err
	},
	"connect": func(ctx context.Context, c *Client) error {
		conn, err := c.Connect(ctx, 80, 0)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = io.Copy(io.Discard, conn)
		return err
	},
}

func drained(r io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

func followed(o process.Output, err error) error {
	if err != nil {
		return err
	}
	defer o.Close()
	for {
		if _, err := o.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestSilence: a guest that is alive, and leaves a request unanswered or stops in the
// middle of an answer, keeps no caller waiting, and the conversation goes on.
func TestSilence(t *testing.T) {
	nothing := func(h *hush, _ *proto.Conn) { <-h.over }
	after := func(frames ...[]byte) func(*hush, *proto.Conn) {
		return func(h *hush, conn *proto.Conn) {
			if lines(conn, frames...) {
				<-h.over
			}
		}
	}
	half := frame(proto.Answer, aFile)[:20]
	piece := frame(proto.Data, "12345")
	places := map[string]func(*hush, *proto.Conn){
		"half a header": after(half[:3]), "half an answer": after(half),
		"a trickle": func(h *hush, conn *proto.Conn) { trickle(h, conn, frame(proto.Answer, strings.Repeat(" ", 1000))) },
	}
	try := func(name, where string, say func(*hush, *proto.Conn)) {
		t.Run(name+", "+where, func(t *testing.T) {
			h := newHush(t, hurried, true, say)
			err := questions[name](t.Context(), h.Client)
			if !errors.Is(err, ErrSilent) || fault.KindOf(err) != fault.Conflict {
				t.Errorf("got %v", err)
			}
			if err := h.failure(); err != nil {
				t.Errorf("the conversation is over: %v", err)
			}
		})
	}
	for name := range questions {
		if name == "wait" || name == "write" || name == "discard" { // as long as they like, and at most so long
			continue
		}
		try(name, "nothing", nothing)
	}
	for where, say := range places {
		try("stat", where, say)
		try("run", where, say)
		try("connect", where, say)
	}
	for _, name := range []string{"read", "pack"} {
		answer := frame(proto.Answer, aFile)
		try(name, "no content", after(answer))
		try(name, "half a piece", after(answer, piece[:7]))
		try(name, "no end", after(answer, piece, piece))
		try(name, "half an end", after(answer, frame(proto.End, "{}")[:6]))
		try(name, "a trickle of pieces", func(h *hush, conn *proto.Conn) {
			if lines(conn, answer) {
				trickle(h, conn, bytes.Repeat(frame(proto.Data, "x"), 1000))
			}
		})
	}
	for _, name := range []string{"create", "unpack"} {
		try(name, "all was taken", func(h *hush, conn *proto.Conn) {
			_, _ = io.Copy(io.Discard, &proto.Content{Conn: conn})
			<-h.over
		})
		try(name, "some is taken", func(h *hush, conn *proto.Conn) {
			for b := make([]byte, 1); ; {
				select {
				case <-time.After(hurried.Silence / 5):
				case <-h.over:
					return
				}
				if _, err := conn.Transport.Read(b); err != nil {
					return
				}
			}
		})
	}
}

// TestDeath: what waits for as long as it likes ends with the guest's signs of life,
// and so does all else.
func TestDeath(t *testing.T) {
	patient := Timeouts{Silence: time.Hour, Work: time.Hour, Pulse: 50 * time.Millisecond}
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			h := newHush(t, patient, false, func(h *hush, conn *proto.Conn) {
				answer := aProcess
				if name == "read" {
					answer = aFile
				}
				if !streams[name] || lines(conn, frame(proto.Answer, answer)) {
					<-h.over
				}
			})
			err := ask(t.Context(), h.Client)
			if !errors.Is(err, ErrSilent) || fault.KindOf(err) != fault.Conflict {
				t.Errorf("got %v", err)
			}
			<-h.Done()
			if _, err := h.Stat(t.Context(), "x"); !errors.Is(err, ErrSilent) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// streams are not over with their answers.
var streams = map[string]bool{"read": true, "pack": true, "run": true, "follow": true, "converse": true, "watch": true, "connect": true}

// TestNobodyComes: a guest that does not make the connections it is asked for.
func TestNobodyComes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := liar.New(t, nil)
	c, err := Timeouts{Pulse: 50 * time.Millisecond, Silence: time.Hour}.Dial(t.Context(), l.Folder, func(context.Context) error {
		first, err := l.Dial(true)
		if err == nil {
			t.Cleanup(func() { first.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stat(t.Context(), "x"); !errors.Is(err, ErrSilent) {
		t.Errorf("got %v", err)
	}
	c.Close()
}

// TestNobodyHears: a guest that does not read what it is asked for on the first
// connection.
func TestNobodyHears(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := liar.New(t, nil)
	c, err := Dial(t.Context(), l.Folder, func(context.Context) error {
		first, err := l.Dial(true)
		if err == nil {
			t.Cleanup(func() { first.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for c.failure() == nil {
		c.want(1)
	}
	c.Close()
}

// TestSignsOfLife: what waits goes on for as long as the guest gives them, and then
// gets what it waits for.
func TestSignsOfLife(t *testing.T) {
	end := frame(proto.End, anExit)
	ends := map[string][2][]byte{
		"wait":     {nil, frame(proto.Answer, `{"process":{"id":"x","pid":2,"exit":{"code":0}}}`)},
		"write":    {nil, frame(proto.Answer, `{"size":4}`)},
		"run":      {frame(proto.Answer, aProcess), end},
		"follow":   {frame(proto.Answer, aProcess), end},
		"converse": {frame(proto.Answer, aProcess), end},
		"watch":    {frame(proto.Answer, `{}`), frame(proto.Change, `[{"change":"created","path":"eA=="}]`)},
		"connect":  {frame(proto.Answer, `{}`), []byte("hello")},
	}
	for name, says := range ends {
		t.Run(name, func(t *testing.T) {
			patiently(t, func(p Timeouts) error {
				h := newHush(t, p, true, func(h *hush, conn *proto.Conn) {
					if !lines(conn, says[0]) {
						return
					}
					for range 2 * p.Silence / p.Pulse { // so for longer than it may be silent
						select {
						case <-h.pulses:
						case <-h.over:
							return
						}
					}
					lines(conn, says[1])
					if name != "connect" { // which ends with the connection
						<-h.over
					}
				})
				return errors.Join(questions[name](t.Context(), h.Client), h.failure())
			})
		})
	}
}

// TestNoSignIsAskedFor: of a guest that no caller waits for.
func TestNoSignIsAskedFor(t *testing.T) {
	for pulse := 500 * time.Millisecond; ; pulse *= 2 {
		patient := Timeouts{Silence: time.Minute, Work: time.Minute, Pulse: pulse, Sign: time.Minute}
		h := newHush(t, patient, false, func(_ *hush, conn *proto.Conn) { lines(conn, frame(proto.Answer, aFile)) })
		began := time.Now()
		if _, err := h.Stat(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) >= pulse { // one may have been asked for while the caller waited
			continue
		}
		select {
		case <-h.pulses:
			t.Error("it was asked for one")
		case <-h.Done():
			t.Errorf("the conversation is over: %v", h.failure())
		case <-time.After(2 * pulse):
		}
		return
	}
}

// TestStandingStill: a sandbox that is made to stand still may take its time.
func TestStandingStill(t *testing.T) {
	patiently(t, func(p Timeouts) error {
		h := newHush(t, p, false, func(h *hush, conn *proto.Conn) {
			time.Sleep(late(p)) // the load: it stands still for longer than it may be silent
			h.SetFrozen(false)
			lines(conn, frame(proto.Answer, aFile))
			<-h.over
		})
		h.SetFrozen(true)
		_, err := h.Stat(t.Context(), "x")
		return err
	})
}

// slow takes its time for each piece.
type slow struct {
	pieces int
	each   time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(s.each) // the load: a slow caller
	if s.pieces--; s.pieces < 0 {
		return 0, io.EOF
	}
	return copy(p, "piece"), nil
}

// TestCallersTakeTheirTime: what they do not say or read yet is not the guest's silence.
func TestCallersTakeTheirTime(t *testing.T) {
	t.Run("to write", func(t *testing.T) {
		patiently(t, func(p Timeouts) error {
			h := newHush(t, p, true, func(h *hush, conn *proto.Conn) {
				if n, err := io.Copy(io.Discard, &proto.Content{Conn: conn}); n == 10 && err == nil {
					lines(conn, frame(proto.Answer, `{"size":10}`))
				}
				<-h.over
			})
			n, err := h.Create(t.Context(), "x", file.CreateOptions{}, &slow{2, late(p)})
			if err == nil && n != 10 {
				t.Errorf("%d bytes", n)
			}
			return err
		})
	})
	t.Run("to read", func(t *testing.T) {
		content := strings.Repeat("x", 4<<20)
		patiently(t, func(p Timeouts) error {
			h := newHush(t, p, true, func(h *hush, conn *proto.Conn) {
				if lines(conn, frame(proto.Answer, aFile)) {
					_, err := conn.Copy(strings.NewReader(content))
					if err == nil && conn.Encode(proto.End, proto.Closing{}) == nil {
						_ = conn.Flush() // the host sees whether all has come
					}
				}
				<-h.over
			})
			_, r, err := h.Read(t.Context(), "x", 0, -1)
			if err != nil {
				return err
			}
			defer r.Close()
			take := func(from io.Reader, want int64) error {
				time.Sleep(late(p)) // the load: a slow caller
				n, err := io.Copy(io.Discard, from)
				if err == nil && n != want {
					t.Errorf("%d bytes, want %d", n, want)
				}
				return err
			}
			if err := take(io.LimitReader(r, 1<<20), 1<<20); err != nil {
				return err
			}
			return take(r, 3<<20)
		})
	})
}

// TestSignsOfLifeOfManyConnections: there is always one left to ask for a sign on, and
// who waits for a connection gets the next that is free.
func TestSignsOfLifeOfManyConnections(t *testing.T) {
	often := Timeouts{Silence: time.Minute, Work: time.Minute, Pulse: 50 * time.Millisecond, Sign: time.Minute}
	h := newHush(t, often, true, func(h *hush, conn *proto.Conn) {
		if lines(conn, frame(proto.Answer, aProcess)) {
			<-h.over
		}
	})
	var all []process.Output
	for len(all) < maxConnections-1 {
		o, err := h.Follow(t.Context(), "x", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		all = append(all, o)
	}
	more := make(chan error, 1)
	go func() {
		o, err := h.Follow(t.Context(), "x", 0)
		if err == nil {
			o.Close()
		}
		more <- err
	}()
	for range len(h.pulses) + 40 { // of which those are older
		select {
		case <-h.pulses:
		case err := <-more:
			t.Fatalf("one more than there can be: %v", err)
		}
	}
	if err := h.failure(); err != nil {
		t.Fatalf("the conversation is over: %v", err)
	}
	all[0].Close()
	if err := <-more; err != nil {
		t.Error(err)
	}
}

// TestAGreetingMayStandStill has the sandbox stand still between a connection that the
// host has asked for and the greeting on it, for longer than that may take.
func TestAGreetingMayStandStill(t *testing.T) {
	l := liar.New(t, nil)
	connected, on := make(chan bool, 1), make(chan bool)
	c, err := Dial(t.Context(), l.Folder, func(context.Context) error {
		first, err := l.Dial(true)
		if err != nil {
			return err
		}
		go func() {
			defer first.Close()
			var w proto.Wanted
			if t, err := first.Next(); err != nil || t != proto.More || first.Decode(&w) != nil {
				return
			}
			for range w.Connections {
				conn, err := l.Connect()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					connected <- true
					<-on
					if liar.Greet(conn, false) == nil {
						liar.Answers(func(*proto.Request) *proto.Reply { return &proto.Reply{} })(conn)
					}
				}()
			}
			_, _ = first.Next() // until the host hangs up
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked := make(chan error, 1)
	go func() {
		_, err := c.call(t.Context(), proto.Request{Forget: &proto.Name{ID: "x"}})
		asked <- err
	}()
	<-connected
	c.SetFrozen(true)
	time.Sleep(goodbye + late(calm)) // the load: a sandbox that sleeps
	c.SetFrozen(false)
	close(on)
	if err := <-asked; err != nil {
		t.Error(err)
	}
}
