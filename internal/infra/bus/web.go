package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	webTime = 90 * time.Second // for a call, longer than a gateway takes
	// webEndTime is how long a gateway may take to say what became of a call that was given
	// up: recording it takes time.
	webEndTime = 15 * time.Second

	// maxWebCalls is how many calls a gateway has under way; it answers others at once.
	maxWebCalls = 1024
)

// webMessage is a call on the bus. Giving it up is told under the name End.
type webMessage struct {
	Call execution.WebCall
	End  string
}

// webAnswer is what a gateway says to a call.
type webAnswer struct {
	Refused bool // no gateway made it
	Answer  execution.WebAnswer
}

// Web returns what makes the calls of programs: a gateway that ServeWeb put on the bus.
func (b *Bus) Web() execution.Web { return webClient{b} }

type webClient struct{ b *Bus }

var _ execution.Web = webClient{}

// CallWeb implements execution.Web.
func (w webClient) CallWeb(ctx context.Context, c execution.WebCall) (execution.WebAnswer, error) {
	if err := w.b.Ready(); err != nil {
		return execution.WebAnswer{}, err
	}
	end := rand.Text()
	// It outlives ctx: until the answer is there it is not known what was charged for.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), webTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { w.giveUp(wait, end, cancel) })
	defer stop()
	msg := &nats.Msg{Subject: w.b.names.web, Data: appendMessage(nil, &webMessage{c, end}, len(c.Body)+512), Header: w.b.headers(ctx, c.TraceID)}
	m, err := w.b.data.RequestMsgWithContext(wait, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return execution.WebAnswer{}, execution.ErrNoGateway
	case err != nil:
		return execution.WebAnswer{}, fault.Wrap(fault.Internal, err, "")
	}
	var a webAnswer
	switch err := parseMessage(m.Data, &a); {
	case err != nil:
		return execution.WebAnswer{}, fault.Wrap(fault.Internal, err, "")
	case a.Refused:
		return execution.WebAnswer{}, execution.ErrNoGateway
	}
	return a.Answer, nil
}

// giveUp tells a gateway until it has answered, because it may not listen yet.
func (w webClient) giveUp(wait context.Context, end string, cancel context.CancelFunc) {
	late := time.AfterFunc(webEndTime, cancel)
	defer late.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_ = w.b.data.Publish(w.b.names.webEnd+end, nil) // without a connection there is no answer either
		select {
		case <-tick.C:
		case <-wait.Done():
			return
		}
	}
}

// ServeWeb has h make calls of programs, of any executor, until stop is called, which ends
// those under way.
func (b *Bus) ServeWeb(h execution.Web) (stop func(), err error) {
	s := &webServer{b: b, h: h, room: make(chan struct{}, maxWebCalls)}
	s.ctx, s.end = context.WithCancel(b.closed)
	sub, err := b.data.QueueSubscribe(b.names.web, gatewayGroup, s.take)
	if err != nil {
		return nil, unavailable(err)
	}
	if err := b.data.Flush(); err != nil {
		return nil, unavailable(err)
	}
	return func() {
		_ = sub.Unsubscribe() // of a closed connection there is none
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.end()
		s.calls.Wait()
	}, nil
}

// webServer answers calls.
type webServer struct {
	b    *Bus
	h    execution.Web
	ctx  context.Context
	end  context.CancelFunc
	room chan struct{} // has a token for each call under way

	mu      sync.Mutex
	stopped bool // guarded by mu
	calls   sync.WaitGroup
}

// take is called for one message at a time.
func (s *webServer) take(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.respond(m, webAnswer{Refused: true})
		return
	}
	select {
	case s.room <- struct{}{}:
	default:
		s.respond(m, webAnswer{Refused: true})
		return
	}
	s.calls.Go(func() {
		defer func() { <-s.room }()
		s.serve(m)
	})
}

func (s *webServer) serve(m *nats.Msg) {
	var in webMessage
	if parseMessage(m.Data, &in) != nil || !isToken(in.End) {
		s.respond(m, webAnswer{Refused: true})
		return
	}
	ctx, cancel := context.WithTimeout(s.b.extract(s.ctx, m.Header), webTime)
	defer cancel()
	sub, err := s.b.data.Subscribe(s.b.names.webEnd+in.End, func(*nats.Msg) { cancel() })
	if err != nil {
		s.respond(m, webAnswer{Refused: true})
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	a, err := s.h.CallWeb(ctx, in.Call)
	if err != nil {
		s.b.cfg.Log.Error("cannot make a program's call", "trace_id", in.Call.TraceID, "error", err)
		a = execution.WebAnswer{Status: 502, Body: []byte(`{"error":"bad_gateway","message":"the call was not made, or its answer is not known"}`)}
	}
	s.respond(m, webAnswer{Answer: a})
}

func (s *webServer) respond(m *nats.Msg, a webAnswer) {
	if err := m.Respond(appendMessage(nil, &a, len(a.Answer.Body)+256)); err != nil && s.ctx.Err() == nil {
		s.b.cfg.Log.Warn("cannot answer a program's call", "error", err)
	}
}
