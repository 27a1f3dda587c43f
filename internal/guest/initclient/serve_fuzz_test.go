package initclient_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// FuzzServe has a hostile guest make requests: whole ones and broken ones, for this host
// and others, more than it may, and while none is answered. The host serves no more at
// once than it says, and none when the run is over.
func FuzzServe(f *testing.F) {
	f.Add([]byte("\x00\x05GET /\x00\x05waits\x04\x00"))
	f.Add([]byte("\x00\x01w\x00\x01w\x00\x01w\x00\x01w\x00\x01w\x00\x01w\x00\x01w\x00\x01w\x00\x01w"))
	f.Add([]byte("\x01\x03\x05\xff\xff\x02\x02\x00\x00\x05\x01x\x03\x01x"))
	f.Add([]byte("\x06\x00\x00\x02ok\x07\x01x"))
	const id = 77
	f.Fuzz(func(t *testing.T, script []byte) {
		g := newImpostor(t)
		c, err := g.dial(t, wire.WelcomeMessage{Protocol: wire.Protocol})
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan struct{})
		go func() {
			defer close(said)
			g.next(t, wire.Run)
			g.ch.FromGuest.SetWriteDeadline(time.Now().Add(2 * time.Second))
			g.ask(script, id)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		go func() {
			<-said
			select {
			case <-c.Done():
			case <-time.After(20 * time.Millisecond):
				cancel()
			}
		}()
		var busy atomic.Int32
		_, err = c.Run(ctx, initclient.RunSpec{ID: id, OutputLimit: 100, Port: 980, Serve: func(ctx context.Context, request []byte) []byte {
			defer busy.Add(-1)
			if n := busy.Add(1); n > wire.MaxAsks || len(request) > wire.MaxAsk {
				t.Errorf("%d requests at once, one of %d bytes", n, len(request))
			}
			if len(request) > 0 && request[0] == 'w' {
				<-ctx.Done()
			}
			if len(request) > 1 && request[0] == 'l' {
				return make([]byte, initclient.MaxResponse+1)
			}
			return request
		}}, func(initclient.Stream, []byte) {})
		if n := busy.Load(); n != 0 {
			t.Errorf("%d requests are served after the run", n)
		}
		if err != nil && !errors.Is(err, initclient.ErrProtocol) && !errors.Is(err, initclient.ErrNotStarted) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		<-said
		c.Close()
	})
}

// ask plays a script of requests.
func (g *impostor) ask(script []byte, id uint64) {
	number := uint64(0)
	for seq := uint64(1); len(script) > 1; seq++ {
		op, n := script[0], int(script[1])
		script = script[2:]
		n = min(n, len(script))
		payload := script[:n]
		script = script[n:]
		f := wire.Frame{Type: wire.Ask, ID: id, Seq: seq, Payload: payload}
		number++
		m := wire.AskMessage{Host: g.nonce, Number: number, Request: payload}
		switch op & 7 {
		case 0:
			f.Payload = m.Append(nil)
		case 1: // anything behind the nonce
			f.Payload = append((&wire.AskMessage{Host: g.nonce}).Append(nil)[:9], payload...)
		case 2: // of another host
			m.Host++
			f.Payload = m.Append(nil)
		case 3:
			f.Type, f.Payload = wire.Stdout, output(0, string(payload))
		case 4:
			f.Type, f.Payload = wire.Exit, exit(wire.ExitMessage{})
		case 5: // one that there was
			m.Number = uint64(op >> 3)
			f.Payload = m.Append(nil)
		case 6: // the longest, and more
			m.Request = make([]byte, wire.MaxAsk+int(op>>6))
			f.Payload = m.Append(nil)
		case 7:
		}
		g.say(f)
	}
}
