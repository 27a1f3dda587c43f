package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// AnswerExecutors answers the calls that executors send with Gateways, until stop is called. All
// gateways share the calls. stop waits for calls under way, and cancels those that take longer than
// a few seconds.
func (b *Bus) AnswerExecutors(h remote.Handlers) (stop func(), err error) {
	s := b.newCallServer(b.names.control, h)
	s.mostOf, s.mostHeldOf = maxCallsOf, maxHeldOf // an executor may be hostile
	return s.start(gatewayGroup, false)
}

// AnswerGateways answers the calls that gateways send with Executors and ExecutorNamed, until stop
// is called. stop is as for AnswerExecutors.
func (b *Bus) AnswerGateways(h remote.Handlers) (stop func(), err error) {
	s := b.newCallServer(b.names.command, h)
	return s.start(startGroup, true)
}

// callServer answers calls.
type callServer struct {
	b        *Bus
	base     string
	handlers remote.Handlers
	ctx      context.Context
	end      context.CancelFunc

	mostOf, mostHeldOf int // calls, and bytes of answers, of one caller

	mu      sync.Mutex
	stopped bool                   // guarded by mu
	calls   map[callKey]*callUnder // guarded by mu
	load    map[string]*callLoad   // guarded by mu; by caller
	held    int                    // guarded by mu; bytes of answers that callers fetch
	ended   map[callKey]time.Time  // guarded by mu; given up before they arrived
	running sync.WaitGroup
}

// callKey identifies a call. Both parts come from subjects.
type callKey struct{ from, id string }

// callLoad is what one caller uses of a server.
type callLoad struct{ calls, held int }

// callUnder is a call under way.
type callUnder struct {
	callKey
	bytes  int // of the call and its answer
	cancel context.CancelFunc
	more   chan callMore
}

func (b *Bus) newCallServer(base string, h remote.Handlers) *callServer {
	s := &callServer{
		b: b, base: base, handlers: h, mostOf: maxCalls, mostHeldOf: maxHeld,
		calls: map[callKey]*callUnder{}, load: map[string]*callLoad{}, ended: map[callKey]time.Time{},
	}
	s.ctx, s.end = context.WithCancel(b.closed)
	return s
}

// start subscribes. named says whether this server also answers calls to itself alone.
func (s *callServer) start(group string, named bool) (stop func(), err error) {
	nc, me := s.b.data, s.b.cfg.Name
	var calls, about []*nats.Subscription
	add := func(to *[]*nats.Subscription, subject, group string, f nats.MsgHandler) {
		if err != nil {
			return
		}
		var sub *nats.Subscription
		if group != "" {
			sub, err = nc.QueueSubscribe(subject, group, f)
		} else {
			sub, err = nc.Subscribe(subject, f)
		}
		if err == nil {
			*to = append(*to, sub)
			err = sub.SetPendingLimits(-1, callsQueued)
		}
	}
	add(&about, s.base+"*"+endSuffix, "", s.giveUp)
	add(&about, s.base+"*"+moreInfix+me, "", s.sendMore)
	add(&calls, s.base+"*", group, func(m *nats.Msg) { s.take(m, "") })
	if named {
		add(&calls, s.base+"*"+toInfix+me, "", func(m *nats.Msg) { s.take(m, toInfix+me) })
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		for _, sub := range append(calls, about...) {
			_ = sub.Unsubscribe() // fails on a closed connection only
		}
		s.end()
		return nil, unavailable(err)
	}
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		s.beat()
	}()
	return func() {
		s.stop(calls)
		<-beats
		for _, sub := range about {
			_ = sub.Unsubscribe() // likewise
		}
	}, nil
}

// stop refuses further calls and waits for those under way.
func (s *callServer) stop(calls []*nats.Subscription) {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	grace := time.NewTimer(s.b.cfg.calls.grace)
	defer grace.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, sub := range calls {
			s.drain(sub) // rejects calls that have arrived
		}
		s.running.Wait()
	}()
	select {
	case <-done:
	case <-grace.C:
	case <-s.ctx.Done():
	}
	s.end()
	<-done
}

// drain ends a subscription after the calls that have arrived.
func (s *callServer) drain(sub *nats.Subscription) {
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	if sub.Drain() != nil {
		return // the connection is closed
	}
	select {
	case <-closed:
	case <-s.ctx.Done():
		_ = sub.Unsubscribe() // fails if it has just ended
	}
}

// take starts a call. NATS calls it for one message of a subscription at a time.
func (s *callServer) take(m *nats.Msg, suffix string) {
	from, id, ok := callOf(m, s.base, suffix)
	if !ok {
		return
	}
	c := &callUnder{callKey: callKey{from, id}, more: make(chan callMore, 4)}
	if no := s.add(c, len(m.Data)); no != nil {
		s.send(m.Reply, no)
		return
	}
	go func() {
		defer s.remove(c)
		s.serve(c, m)
	}()
}

// add returns the answer to a call that cannot run, nil if it can.
func (s *callServer) add(c *callUnder, bytes int) *callAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	load := s.load[c.from]
	if load == nil {
		load = &callLoad{}
	}
	switch {
	case s.stopped:
		return &callAnswer{Refused: "the server that was asked is stopping; nothing was done. Retry in a few seconds"}
	case s.forget(c.callKey):
		return &callAnswer{Lost: "the call was given up before it began; nothing was done"}
	case s.calls[c.callKey] != nil:
		return &callAnswer{Lost: "the server that was asked already runs this call"}
	case len(s.calls) >= maxCalls, load.calls >= s.mostOf, s.held+bytes > maxHeld, load.held+bytes > s.mostHeldOf:
		return &callAnswer{Refused: "the server that was asked has too many calls at once; nothing was done. Retry in a few seconds"}
	}
	load.calls++
	s.load[c.from], s.calls[c.callKey] = load, c
	s.count(c, bytes)
	s.running.Add(1) // before stop can wait
	return nil
}

func (s *callServer) remove(c *callUnder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.callKey)
	s.count(c, -c.bytes)
	load := s.load[c.from]
	if load.calls--; load.calls == 0 {
		delete(s.load, c.from)
	}
	s.running.Done()
}

// count adds to the bytes of a call. It needs mu.
func (s *callServer) count(c *callUnder, bytes int) {
	c.bytes += bytes
	s.held += bytes
	s.load[c.from].held += bytes
}

// hold counts the bytes of an answer. It reports false if callers already fetch too many.
func (s *callServer) hold(c *callUnder, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+bytes > maxHeld || s.load[c.from].held+bytes > s.mostHeldOf {
		return false
	}
	s.count(c, bytes)
	return true
}

// forget reports whether the caller gave up a call before it arrived. It needs mu.
func (s *callServer) forget(key callKey) bool {
	_, ended := s.ended[key]
	delete(s.ended, key)
	return ended
}

// serve makes a call and sends its answer.
func (s *callServer) serve(c *callUnder, m *nats.Msg) {
	var in callRequest
	if err := parseMessage(m.Data, &in); err != nil {
		s.send(m.Reply, &callAnswer{Refused: "the server that was asked cannot read the call; run the same version on all servers"})
		return
	}
	h, ok := s.handlers[in.Name]
	if !ok {
		s.send(m.Reply, &callAnswer{Refused: fmt.Sprintf("the server that was asked does not know the call %q; run the same version on all servers", in.Name)})
		return
	}
	m.Data = nil // In is a copy
	ctx, cancel := context.WithTimeout(s.b.extract(s.ctx, m.Header), callTimeout(in.Timeout))
	defer cancel()
	if !s.begin(c, cancel) {
		return
	}
	out, err := s.call(ctx, h, c.from, in)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) { // the end of this context is not the end of the caller's
		err = fault.New(fault.Unavailable, "the server that was asked ended the call %s early; it may have run. Check its effect, then retry", in.Name)
	}
	s.answer(ctx, c, m.Reply, s.encode(in.Name, out, err))
}

// begin lets giveUp cancel the call. It reports false if that has already happened.
func (s *callServer) begin(c *callUnder, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.cancel = cancel
	return !s.forget(c.callKey)
}

// call calls the handler. A caller must not end the server, so call recovers panics.
func (s *callServer) call(ctx context.Context, h remote.Handler, from string, in callRequest) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.b.cfg.Log.Error("the call of another server panicked", "call", in.Name, "server", from, "panic", p, "stack", string(debug.Stack()))
			out, err = nil, fault.New(fault.Internal, "the call failed on another server")
		}
	}()
	return h(ctx, from, func(v any) error { return parseMessage(in.In, v) })
}

// encode returns the result of a call as bytes.
func (s *callServer) encode(name string, out any, err error) []byte {
	r := callResultOutgoing{Err: remote.EncodeError(err)}
	if err == nil {
		r.Out = out
	}
	b, err := encodeValue(&r)
	if err == nil && len(b) > maxAnswer {
		err = fault.New(fault.TooLarge, "the answer of the call %s has %d bytes, more than the %d that servers exchange; ask for less", name, len(b), maxAnswer)
	} else if err != nil {
		err = fault.Wrap(fault.Internal, err, "cannot encode the answer of the call "+name)
	}
	if err != nil {
		b = appendMessage(nil, &callResultOutgoing{Err: remote.EncodeError(err)}, 256)
	}
	return b
}

// answer sends a result, and waits until the caller has all of it.
func (s *callServer) answer(ctx context.Context, c *callUnder, reply string, body []byte) {
	first := callAnswer{Server: s.b.cfg.Name, Total: len(body)}
	if len(body) <= firstPiece {
		first.Data = body
		s.deliver(ctx, reply, &first)
		return
	}
	if !s.hold(c, len(body)) {
		s.send(reply, &callAnswer{Lost: "the server that was asked holds too many large answers; the call ran, but its answer is lost. Retry in a few seconds"})
		return
	}
	if !s.deliver(ctx, reply, &first) {
		return
	}
	// A caller asks for larger pieces, and for few of them twice.
	for left := len(body)/firstPiece + 64; left > 0; left-- {
		gone := time.NewTimer(s.b.cfg.calls.silence)
		var more callMore
		select {
		case more = <-c.more:
			gone.Stop()
		case <-gone.C:
			return
		case <-ctx.Done():
			gone.Stop()
			return
		}
		if more.Offset < 0 || more.Offset >= len(body) || more.Size <= 0 {
			return // the caller has all of it
		}
		end := more.Offset + min(more.Size, maxPiece, len(body)-more.Offset)
		s.send(reply, &callAnswer{Server: s.b.cfg.Name, Total: len(body), Offset: more.Offset, Data: body[more.Offset:end]})
	}
}

// deliver sends the first message of an answer. It tries again while the connection is away.
func (s *callServer) deliver(ctx context.Context, reply string, a *callAnswer) bool {
	for began := time.Now(); ; {
		err := s.publish(reply, a)
		switch {
		case err == nil:
			return true
		case !errors.Is(err, nats.ErrReconnectBufExceeded), time.Since(began) > s.b.cfg.calls.silence, !pauseFor(ctx, 100*time.Millisecond):
			s.failed(err)
			return false
		}
	}
}

// send sends a message. If that fails, the caller asks again or gives up.
func (s *callServer) send(reply string, a *callAnswer) {
	if err := s.publish(reply, a); err != nil {
		s.failed(err)
	}
}

func (s *callServer) publish(reply string, a *callAnswer) error {
	return s.b.data.Publish(reply, appendMessage(nil, a, len(a.Data)+128))
}

func (s *callServer) failed(err error) {
	if s.ctx.Err() == nil {
		s.b.cfg.Log.Warn("cannot answer a call of another server, which has to send it again", "error", err)
	}
}

// giveUp cancels a call whose caller has given it up. All servers receive it.
func (s *callServer) giveUp(m *nats.Msg) {
	from, ok := fromOf(m, s.base, endSuffix)
	id := string(m.Data)
	if !ok || !isToken(id) {
		return
	}
	key := callKey{from, id}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[key]; c != nil && c.cancel != nil {
		c.cancel()
	} else if len(s.ended) < maxEnded {
		s.ended[key] = time.Now() // the call may arrive later, over another subscription
	}
}

// sendMore sends the piece that a caller requests.
func (s *callServer) sendMore(m *nats.Msg) {
	from, ok := fromOf(m, s.base, moreInfix+s.b.cfg.Name)
	var more callMore
	if !ok || parseMessage(m.Data, &more) != nil || !isToken(more.ID) {
		return
	}
	s.mu.Lock()
	c := s.calls[callKey{from, more.ID}]
	s.mu.Unlock()
	if c == nil {
		if m.Reply == inboxOf(from, more.ID) {
			s.send(m.Reply, &callAnswer{Lost: "the server that was asked no longer has the answer; the call may have run. Check its effect, then retry"})
		}
		return
	}
	select {
	case c.more <- more:
	default: // the caller has asked often
	}
}

// beat tells callers that this server works on their calls, until the server ends.
func (s *callServer) beat() {
	tick := time.NewTicker(s.b.cfg.calls.beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		inboxes := make([]string, 0, len(s.calls))
		for key := range s.calls {
			inboxes = append(inboxes, inboxOf(key.from, key.id))
		}
		for key, at := range s.ended {
			if time.Since(at) > endedFor {
				delete(s.ended, key)
			}
		}
		s.mu.Unlock()
		for _, inbox := range inboxes {
			_ = s.publish(inbox, &callAnswer{Busy: true}) // without a connection, the caller times out
		}
	}
}
