package guestinit

import (
	"time"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// message is a request put together from its frames.
type message struct {
	typ  wire.Type
	id   uint64
	body []byte
	open bool // First has come and Last has not
}

// readHost takes what the host has sent.
func (s *supervisor) readHost() {
	n, err := raw.Read(fromHost, s.dec.Space())
	if err == nil && n == 0 {
		// Only a host that did not open the FIFO read-write lets it end; a
		// pause keeps the loop from spinning until the next one opens it.
		nap(10 * time.Millisecond)
	}
	if n == 0 {
		return
	}
	s.dec.Advance(n)
	for {
		f, ok := s.dec.Next()
		if !ok {
			return
		}
		s.frame(f)
	}
}

// frame deals with one frame, or puts it to the others of its message.
func (s *supervisor) frame(f wire.Frame) {
	switch f.Type {
	case wire.Hello:
		s.hello(f)
		return
	case wire.Ack:
		s.out.ack(f.Seq)
		return
	}
	if f.Flags&(wire.First|wire.Last) == wire.First|wire.Last {
		s.partial = message{}
		s.request(f.Type, f.ID, f.Payload)
		return
	}
	p := &s.partial
	switch {
	case f.Flags&wire.First != 0:
		// A host that was killed half way left the rest of the last one out.
		*p = message{typ: f.Type, id: f.ID, open: true}
	case !p.open || p.typ != f.Type || p.id != f.ID:
		return
	}
	if len(p.body)+len(f.Payload) > wire.MaxMessage {
		s.partial = message{}
		return
	}
	p.body = append(p.body, f.Payload...)
	if f.Flags&wire.Last != 0 {
		m := *p
		s.partial = message{}
		s.request(m.typ, m.id, m.body)
	}
}

func (s *supervisor) hello(f wire.Frame) {
	var m wire.HelloMessage
	if !m.Decode(f.Payload) {
		return
	}
	s.partial = message{}
	if s.door != nil && f.ID != s.host {
		s.door.hostChanged()
	}
	s.host = f.ID
	s.out.ack(f.Seq)
	w := wire.WelcomeMessage{Version: s.version}
	if m.Min <= wire.Protocol && wire.Protocol <= m.Max {
		w.Protocol = wire.Protocol
	}
	if s.warm != nil && s.warm.ready {
		w.Warm = s.warm.cmd.Language
	}
	w.Runs = s.out.ended(nil)
	for _, r := range s.runs {
		w.Runs = append(w.Runs, r.id)
	}
	s.out.welcome(f.ID, w.Append(nil))
}

// request deals with a whole message. p is only valid during the call.
func (s *supervisor) request(t wire.Type, id uint64, p []byte) {
	switch t {
	case wire.Run, wire.Kill, wire.Reseed, wire.Answer, wire.Ping:
	default: // it may change what programs find
		s.dropDraft()
	}
	switch t {
	case wire.Run:
		s.startRun(id, p)
	case wire.Warm:
		s.startWarm(id, p)
	case wire.Kill:
		var m wire.KillMessage
		if !m.Decode(p) {
			s.reply(id, errMalformed)
			return
		}
		s.reply(id, s.kill(m.Run, m.Signal))
	case wire.Reseed:
		var m wire.ReseedMessage
		if !m.Decode(p) {
			s.reply(id, errMalformed)
			return
		}
		s.restored = true
		err := s.rename(&m)
		if err == nil && s.warm != nil && s.warm.settle(id) {
			return // heard answers
		}
		s.reply(id, err)
	case wire.Confine:
		var m wire.ConfineMessage
		if !m.Decode(p) {
			s.reply(id, errMalformed)
			return
		}
		s.reply(id, s.confine(&m))
	case wire.Enter:
		var m wire.EnterMessage
		if !m.Decode(p) {
			s.reply(id, errMalformed)
			return
		}
		s.reply(id, s.enter(m.Fill))
	case wire.Renew:
		s.renew(id, p)
	case wire.Protect:
		var m wire.ProtectMessage
		if !m.Decode(p) {
			s.reply(id, errMalformed)
			return
		}
		s.reply(id, protect(m.Folders))
	case wire.StartDaemon:
		var m wire.StartDaemonMessage
		if !m.Decode(p) {
			s.reply(id, errMalformed)
			return
		}
		s.reply(id, s.callDaemon(&m))
	case wire.Answer:
		var m wire.AnswerMessage
		if m.Decode(p) {
			s.answer(id, &m)
		}
	case wire.Ping:
		s.reply(id, nil)
	}
}

const errMalformed = failure("the request is malformed")

func (s *supervisor) reply(id uint64, err error) {
	var m wire.ReplyMessage
	if err != nil {
		m.Error = clip(err.Error(), 4<<10)
	}
	s.out.put(wire.Reply, id, m.Append(nil))
}

func clip(s string, n int) string { return s[:min(n, len(s))] }
