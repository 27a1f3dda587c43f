package initclient

import (
	"context"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// server answers the HTTP requests of a run's program.
type server struct {
	c     *Client
	id    RunID
	serve Serve
	ctx   context.Context
	end   context.CancelFunc
	calls sync.WaitGroup // of serve

	mu    sync.Mutex
	ended bool   // guarded by mu
	busy  int    // guarded by mu; calls under way
	last  uint64 // guarded by mu; number of the last request
}

func newServer(c *Client, id RunID, serve Serve) *server {
	s := &server{c: c, id: id, serve: serve}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// take deals with an Ask. A guest that asks more at once than it may breaks the protocol.
func (s *server) take(f wire.Frame) error {
	var m wire.AskMessage
	if !m.Decode(f.Payload) || len(m.Request) > wire.MaxAsk {
		return violation("malformed Ask")
	}
	if m.Host != s.c.nonce {
		return nil // of an earlier host; the guest has told its program
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil
	case s.busy == wire.MaxAsks:
		return violation("more than %d requests of a run at once", wire.MaxAsks)
	case m.Number <= s.last:
		return violation("request %d came after request %d", m.Number, s.last)
	}
	s.busy++
	s.last = m.Number
	request := slices.Clone(m.Request)
	s.calls.Go(func() { s.answer(m.Number, request) })
	return nil
}

func (s *server) answer(number uint64, request []byte) {
	m := wire.AnswerMessage{Number: number, Response: s.serve(s.ctx, request)}
	if len(m.Response) > wire.MaxAnswer {
		m.Response = []byte("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}
	s.mu.Lock()
	s.busy--
	s.mu.Unlock()
	// An error says that the run or the conversation is over: then nothing waits for it.
	_ = s.c.send.send(s.ctx, wire.Frame{Type: wire.Answer, ID: uint64(s.id), Payload: m.Append(nil)}, nil)
}

// stop ends all calls; none is under way when it returns.
func (s *server) stop() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end()
	s.calls.Wait()
}
