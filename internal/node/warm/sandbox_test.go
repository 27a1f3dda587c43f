package warm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/guest/wire"
	"github.com/atoll-run/atoll/internal/node/image"
)

// instance is a sandbox whose guest the test speaks for, and whose memory is
// used up.
type instance struct {
	runtime.Instance
	channel runtime.Channel
	done    chan struct{}
}

func (i *instance) Channel() runtime.Channel { return i.channel }
func (i *instance) ID() runtime.ID           { return "sb-1" }
func (i *instance) Done() <-chan struct{}    { return i.done }
func (i *instance) Usage(context.Context) (runtime.Usage, error) {
	return runtime.Usage{Memory: runtime.DefaultLimits().Memory}, nil
}

// guestSays starts a sandbox whose guest answers each frame with what says
// returns; the sequence numbers are filled in.
func guestSays(t *testing.T, says func(f wire.Frame) []wire.Frame) *Sandbox {
	t.Helper()
	inst := &instance{done: make(chan struct{})}
	for name, f := range map[string]**os.File{"to": &inst.channel.ToGuest, "from": &inst.channel.FromGuest} {
		path := filepath.Join(t.TempDir(), name)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if *f, err = os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*f).Close() })
	}
	go func() {
		dec := wire.NewDecoder(wire.MaxPayload)
		var seq uint64
		for {
			n, err := inst.channel.ToGuest.Read(dec.Space())
			if err != nil {
				return // the test is over
			}
			dec.Advance(n)
			for f, ok := dec.Next(); ok; f, ok = dec.Next() {
				if f.Type == wire.Hello {
					m := wire.WelcomeMessage{Protocol: wire.Protocol, Version: "test"}
					inst.channel.FromGuest.Write(wire.AppendFrame(nil, wire.Frame{Type: wire.Welcome, ID: f.ID, Payload: m.Append(nil)}))
				}
				for _, answer := range says(f) {
					seq++
					answer.Seq = seq
					inst.channel.FromGuest.Write(wire.AppendFrame(nil, answer))
				}
			}
		}
	}()
	bash := image.Interpreter{Language: execution.Bash, Path: "/bin/bash"}
	m := &Maker{cfg: Config{Image: &image.Image{Interpreters: []image.Interpreter{bash}}, Limits: runtime.DefaultLimits()}}
	s, err := m.adopt(t.Context(), Key{Language: execution.Bash}, inst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.guest.Close() })
	return s
}

func run(t *testing.T, ctx context.Context, s *Sandbox) execution.Outcome {
	t.Helper()
	out, err := s.Run(ctx, execution.Program{ID: 1, Language: execution.Bash, Code: "true", Timeout: time.Minute}, func(execution.Stream, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Of a guest that takes longer than killTime to answer, as on a busy machine, the end is not
// known: it is tried again.
func TestAProgramThatEndsBeforeItsKillKeepsItsEnd(t *testing.T) {
	for range 5 {
		begun := time.Now()
		out := endsBeforeItsKill(t)
		if out.Lost && time.Since(begun) >= killTime {
			continue
		}
		if out.ExitCode != 0 || out.Lost || out.OOM {
			t.Errorf("a program that had ended well was taken for %+v", out)
		}
		return
	}
	t.Error("a program that had ended well is lost")
}

func endsBeforeItsKill(t *testing.T) execution.Outcome {
	var id uint64
	s := guestSays(t, func(f wire.Frame) []wire.Frame {
		switch f.Type {
		case wire.Run:
			id = f.ID
		case wire.Kill:
			refusal, exit := wire.ReplyMessage{Error: "no such run"}, wire.ExitMessage{}
			return []wire.Frame{
				{Type: wire.Reply, ID: f.ID, Payload: refusal.Append(nil)},
				{Type: wire.Exit, ID: id, Payload: exit.Append(nil)},
			}
		}
		return nil
	})
	return run(t, t.Context(), s)
}

func TestAStalledGuestOutOfMemoryDidNotTimeOut(t *testing.T) {
	s := guestSays(t, func(f wire.Frame) []wire.Frame {
		if f.Type != wire.Kill {
			return nil
		}
		return []wire.Frame{{Type: wire.Reply, ID: f.ID, Payload: new(wire.ReplyMessage).Append(nil)}}
	})
	if out := run(t, t.Context(), s); !out.OOM || out.TimedOut {
		t.Errorf("the end of a program out of memory was taken for %+v", out)
	}
}

func TestAProgramCancelledBeforeItBeganIsGivenUp(t *testing.T) {
	s := guestSays(t, func(f wire.Frame) []wire.Frame {
		if f.Type != wire.Kill {
			return nil
		}
		refusal := wire.ReplyMessage{Error: initclient.ErrNoRun.Error()}
		return []wire.Frame{{Type: wire.Reply, ID: f.ID, Payload: refusal.Append(nil)}}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	if out := run(t, ctx, s); !out.Lost || out.TimedOut {
		t.Errorf("a program that was not begun was taken for %+v", out)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("giving up took %s", took)
	}
}
