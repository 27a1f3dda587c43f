package guestinit

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// TestFirstOutputPassesFirst has the first output of a warmed program wait for its end: it is
// passed on before what comes to the other output meanwhile, when its time is over, and at the end.
func TestFirstOutputPassesFirst(t *testing.T) {
	then := map[string]func(s *supervisor, r *run, other *stream){
		"the other writes":      func(s *supervisor, r *run, other *stream) { s.flow(r, other) },
		"its time is over":      func(s *supervisor, r *run, _ *stream) { s.expire(time.Now().Add(holdTime)) },
		"the program has ended": func(s *supervisor, r *run, _ *stream) { s.drain(r) },
	}
	for name, happens := range then {
		for first := range 2 {
			s := &supervisor{poller: &poller{now: unix.POLLIN}}
			r := &run{id: 1, limit: 1 << 20, lastWord: true}
			s.runs = []*run{r}
			var write [2]int
			for i, typ := range []wire.Type{wire.Stdout, wire.Stderr} {
				var ends [2]int
				if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { unix.Close(ends[0]); unix.Close(ends[1]) })
				r.streams[i], write[i] = stream{pipe: pipe{fd: ends[0]}, typ: typ, left: -1}, ends[1]
			}
			say := func(i int) {
				if _, err := unix.Write(write[i], []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			say(first)
			s.flow(r, &r.streams[first])
			if len(s.out.buf) > 0 {
				t.Fatalf("%s: the first output does not wait", name)
			}
			say(1 - first)
			happens(s, r, &r.streams[1-first])
			if len(s.out.buf) == 0 {
				t.Fatalf("%s: nothing is passed on", name)
			}
			dec := wire.NewDecoder(wire.MaxPayload)
			dec.Advance(copy(dec.Space(), s.out.buf))
			if f, ok := dec.Next(); !ok || f.Type != r.streams[first].typ {
				t.Errorf("%s: %v came first, %v was written first", name, f.Type, r.streams[first].typ)
			}
		}
	}
}
