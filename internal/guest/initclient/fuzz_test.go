package initclient_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// FuzzClient plays a guest that says anything, in valid frames or not. Each step
// of the script is a byte that says what, and for frames one that says how much
// of the rest is payload. The client must neither panic nor hang, pass on no
// more than was asked for, and end a run with a result, a refusal or a reason.
func FuzzClient(f *testing.F) {
	f.Add([]byte("\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x00ok\x02\x0a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"))
	f.Add(append([]byte{2, byte(len(exit(wire.ExitMessage{Code: 3})))}, exit(wire.ExitMessage{Code: 3})...))
	f.Add([]byte("\x03\x02\x01x"))
	f.Add([]byte("\x06noise that is no frame"))
	f.Add([]byte("\x05\x00\x04\x02\x00\x00"))
	const id = 77
	f.Fuzz(func(t *testing.T, script []byte) {
		g := newImpostor(t)
		c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol, Runs: []uint64{5}})
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan struct{})
		go func() {
			defer close(said)
			g.next(t, wire.Run)
			g.ch.FromGuest.SetWriteDeadline(time.Now().Add(2 * time.Second))
			perform(g, script, id)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var got int
		go func() {
			<-said
			// What the script leaves open ends here.
			select {
			case <-c.Done():
			case <-time.After(20 * time.Millisecond):
				cancel()
			}
		}()
		_, err = c.Run(ctx, initclient.RunSpec{ID: id, OutputLimit: 100}, func(_ initclient.Stream, p []byte) { got += len(p) })
		if got > 200 {
			t.Errorf("%d bytes were passed on", got)
		}
		if err != nil && !errors.Is(err, initclient.ErrProtocol) && !errors.Is(err, initclient.ErrNotStarted) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		<-said
		c.Discard(t.Context(), 5)
		c.Close()
	})
}

// perform plays a script.
func perform(g *impostor, script []byte, id uint64) {
	types := []wire.Type{wire.Stdout, wire.Stderr, wire.Exit, wire.Refused, wire.Reply, wire.Welcome}
	for seq := uint64(1); len(script) > 1; {
		op, n := script[0], int(script[1])
		script = script[2:]
		n = min(n, len(script))
		payload := script[:n]
		script = script[n:]
		if op&7 >= 6 {
			g.ch.FromGuest.Write(payload)
			continue
		}
		f := wire.Frame{Type: types[op&7], ID: id, Seq: seq, Flags: op >> 6, Payload: payload}
		if op&8 != 0 {
			f.ID = 5 // the run without a sink
		}
		if op&16 != 0 {
			f.Seq += uint64(op >> 5)
		}
		seq++
		g.say(f)
	}
}
