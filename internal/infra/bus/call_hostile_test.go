package bus

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestHostileAnswers answers calls with messages that no server sends.
func TestHostileAnswers(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", calls: callTimes{beat: time.Hour, silence: 300 * time.Millisecond, again: 50 * time.Millisecond, grace: time.Second}})
	ctx := deadline(t, time.Minute)
	encode := func(a callAnswer) []byte { return appendMessage(nil, &a, 100) }
	big := func(server string) []byte { return encode(callAnswer{Server: server, Total: 3 << 20}) }
	n := 0
	var all sync.WaitGroup
	for name, c := range map[string]struct {
		first func(server string) []byte // nil for none
		piece []byte
	}{
		"nothing":            {},
		"not CBOR":           {first: always([]byte("\xff"))},
		"empty":              {first: always([]byte{})},
		"a negative size":    {first: always(encode(callAnswer{Total: -1}))},
		"a huge size":        {first: func(server string) []byte { return encode(callAnswer{Server: server, Total: maxAnswer + 1}) }},
		"more than the size": {first: func(server string) []byte { return encode(callAnswer{Server: server, Total: 1, Data: []byte("ab")}) }},
		"an offset": {first: func(server string) []byte {
			return encode(callAnswer{Server: server, Total: 9, Offset: 3, Data: []byte("ab")})
		}},
		"a bad server":          {first: always(encode(callAnswer{Server: "a.*", Total: 1 << 20}))},
		"no such server":        {first: always(encode(callAnswer{Server: "other", Total: 1 << 20}))},
		"no result":             {first: always(encode(callAnswer{Total: 3, Data: []byte("abc")}))},
		"no piece":              {first: big},
		"a large piece":         {first: big, piece: encode(callAnswer{Total: 3 << 20, Data: make([]byte, maxPiece+1)})},
		"a piece of another":    {first: big, piece: encode(callAnswer{Total: 3<<20 + 1, Data: make([]byte, 10)})},
		"an empty piece":        {first: big, piece: encode(callAnswer{Total: 3 << 20})},
		"a piece not asked for": {first: big, piece: encode(callAnswer{Total: 3 << 20, Offset: 5, Data: []byte("x")})},
		"a refused piece":       {first: big, piece: encode(callAnswer{Lost: "lost"})},
		"refused":               {first: always(encode(callAnswer{Refused: "full"}))},
		"a text as a status":    {first: always([]byte("503"))},
	} {
		n++
		server := fmt.Sprint("evil_", n)
		var first []byte
		if c.first != nil {
			first = c.first(server)
		}
		for subject, answer := range map[string][]byte{b.names.command + "gw.to." + server: first, b.names.command + "gw.more." + server: c.piece} {
			if _, err := b.data.Subscribe(subject, func(m *nats.Msg) {
				if answer != nil && m.Reply != "" {
					_ = m.Respond(answer)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		all.Go(func() {
			if got, err := callEcho.Do(ctx, b.ExecutorNamed(server), "x"); err == nil || fault.KindOf(err) != fault.Unavailable && fault.KindOf(err) != fault.Internal {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		})
	}
	all.Wait()
	// A server that sends far more than it was asked for.
	flood := make([]byte, 256<<10)
	sub, err := b.data.Subscribe(b.names.command+"gw.to.flood", func(m *nats.Msg) {
		for range 100 {
			_ = m.Respond(appendMessage(nil, &callAnswer{Busy: true, Data: flood}, len(flood)))
		}
		_ = m.Respond(encode(callAnswer{Refused: "enough"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if _, err := callEcho.Do(ctx, b.ExecutorNamed("flood"), "x"); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
}

func always(b []byte) func(string) []byte { return func(string) []byte { return b } }

// TestHostileCalls sends messages that no caller sends.
func TestHostileCalls(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", calls: shortCalls})
	s := newAnswerer("s")
	answerExecutors(t, b, s)
	ctx := deadline(t, time.Minute)
	base := b.names.control
	stolen, err := b.data.SubscribeSync("atoll.stolen")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.data.SubscribeSync(inboxOf("exe_2", ">"))
	if err != nil {
		t.Fatal(err)
	}
	call, err := encodeValue(&callOutgoing{Name: string(callEcho), In: "x"})
	if err != nil {
		t.Fatal(err)
	}
	// Answers go to an inbox of the sender only.
	for _, reply := range []string{"", "atoll.stolen", inboxOf("exe_2", "abc"), inboxOf("exe_1", ""), inboxOf("exe_1", "a.b"), "_INBOX.exe_1"} {
		if err := b.data.PublishMsg(&nats.Msg{Subject: base + "exe_1", Reply: reply, Data: call}); err != nil {
			t.Fatal(err)
		}
	}
	wait := newAnswerCall(t, b, s, "exe_1")
	for subject, data := range map[string][]byte{
		base + "exe_2" + endSuffix:        []byte(wait.id), // another's call
		base + "exe_1" + endSuffix:        []byte("a.*"),
		base + "exe_2" + moreInfix + "gw": appendMessage(nil, &callMore{ID: wait.id, Size: 1}, 64),
		base + "exe_1" + moreInfix + "gw": []byte("\xff"),
	} {
		if err := b.data.PublishMsg(&nats.Msg{Subject: subject, Reply: "atoll.stolen", Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	// The same call again does not run again.
	if err := b.data.PublishMsg(&nats.Msg{Subject: base + "exe_1", Reply: wait.inbox, Data: call}); err != nil {
		t.Fatal(err)
	}
	if m, err := wait.sub.NextMsgWithContext(ctx); err != nil || !bytes.Contains(m.Data, []byte("already runs")) {
		t.Errorf("got %q, %v", m.Data, err)
	}
	// A piece of a call that has ended, or never was.
	if err := b.data.PublishMsg(&nats.Msg{Subject: base + "exe_1" + moreInfix + "gw", Reply: inboxOf("exe_1", "unknown"), Data: appendMessage(nil, &callMore{ID: "unknown"}, 64)}); err != nil {
		t.Fatal(err)
	}
	if _, err := callEcho.Do(ctx, b.Gateways(), "x"); err != nil { // after all of these
		t.Error(err)
	}
	select {
	case err := <-s.ended:
		t.Errorf("a call was ended by another server: %v", err)
	default:
	}
	close(s.free)
	for a := (callAnswer{Busy: true}); a.Busy; {
		m, err := wait.sub.NextMsgWithContext(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if a, err = decodeAnswerOfCall(m.Data); err != nil {
			t.Error(err)
		}
	}
	if err := b.data.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []*nats.Subscription{stolen, theirs} {
		if n, _, err := sub.Pending(); err != nil || n > 0 {
			t.Errorf("%d answers went to %s, %v", n, sub.Subject, err)
		}
	}
	if n := s.calls.Load(); n != 1 {
		t.Errorf("%d calls ran", n)
	}
	// A call that was given up before it arrived does not begin.
	if err := b.data.Publish(base+"exe_1"+endSuffix, []byte("early")); err != nil {
		t.Fatal(err)
	}
	if err := b.data.Flush(); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, 10*time.Second, "the call is refused", func() bool {
		early := inboxOf("exe_1", "early")
		sub, err := b.data.SubscribeSync(early)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
		if err := b.data.PublishMsg(&nats.Msg{Subject: base + "exe_1", Reply: early, Data: call}); err != nil {
			t.Fatal(err)
		}
		m, err := sub.NextMsgWithContext(ctx)
		return err == nil && bytes.Contains(m.Data, []byte("given up before"))
	})
}

// newAnswerCall starts a call that waits, in the name of an executor.
func newAnswerCall(t *testing.T, b *Bus, s *answerer, from string) *answers {
	t.Helper()
	a := &answers{id: "call-1", inbox: inboxOf(from, "call-1")}
	var err error
	if a.sub, err = b.data.SubscribeSync(a.inbox); err != nil {
		t.Fatal(err)
	}
	call, err := encodeValue(&callOutgoing{Name: string(callWait), In: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.data.PublishMsg(&nats.Msg{Subject: b.names.control + from, Reply: a.inbox, Data: call}); err != nil {
		t.Fatal(err)
	}
	<-s.begun
	return a
}

// TestUnfetchedAnswers checks that a caller that does not fetch its answers only holds its own share.
func TestUnfetchedAnswers(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", calls: callTimes{beat: time.Hour, silence: time.Hour, again: time.Hour, grace: time.Millisecond}})
	h := newAnswerer("s").handlers()
	h["zeros"] = func(context.Context, string, func(any) error) (any, error) { return make([]byte, 60<<20), nil }
	stop, err := b.AnswerExecutors(h)
	stopOnce(t, stop, err)
	ctx := deadline(t, time.Minute)
	call, err := encodeValue(&callOutgoing{Name: "zeros"})
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := b.data.SubscribeSync(inboxOf("exe_1", "*"))
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i := range 6 {
		if err := b.data.PublishMsg(&nats.Msg{Subject: b.names.control + "exe_1", Reply: inboxOf("exe_1", fmt.Sprint(i)), Data: call}); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		m, err := inbox.NextMsgWithContext(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeAnswerOfCall(m.Data); err != nil {
			lost++
		}
	}
	if lost != 2 {
		t.Errorf("the server refused %d of 6 answers", lost)
	}
	var got []byte
	if err := b.Gateways().Call(ctx, "zeros", nil, &got); err != nil || len(got) != 60<<20 {
		t.Errorf("another caller got %d bytes, %v", len(got), err)
	}
}

// FuzzCallServer decodes arbitrary bytes as calls.
func FuzzCallServer(f *testing.F) {
	for _, v := range []any{&callOutgoing{string(callEcho), time.Second, "x"}, &callOutgoing{string(callFail), -1, "panic"}, &callOutgoing{"sandbox", 1 << 62, full[sandbox.Grant]()}, &callOutgoing{}, &callMore{"id", 1, 1 << 60}} {
		b, err := encodeValue(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "control.exe_1", "_INBOX.exe_1.abc")
	}
	b := embedded(f)
	a := newAnswerer("s")
	f.Fuzz(func(t *testing.T, data []byte, subject, reply string) {
		h := a.handlers()
		h["sandbox"] = func(_ context.Context, _ string, decode func(any) error) (any, error) {
			var g sandbox.Grant
			return g, decode(&g)
		}
		delete(h, string(callWait))
		delete(h, string(callBig))
		delete(h, string(callSkill))
		s := b.newCallServer("control.", h)
		defer s.end()
		m := &nats.Msg{Subject: subject, Reply: reply, Data: data}
		s.take(m, "")
		s.running.Wait()
		s.giveUp(m)
		s.sendMore(m)
		if len(s.calls) > 0 || len(s.load) > 0 || s.held != 0 {
			t.Errorf("%d calls, %d callers and %d bytes are left", len(s.calls), len(s.load), s.held)
		}
	})
}

// FuzzCallClient decodes arbitrary bytes as answers.
func FuzzCallClient(f *testing.F) {
	s := &callServer{}
	result := s.encode("x", full[sandbox.Sandbox](), nil)
	f.Add(result)
	f.Add(s.encode("x", nil, sandbox.ErrNotFound))
	f.Add(appendMessage(nil, &callAnswer{Server: "gw", Total: len(result), Data: result}, 100))
	f.Add(appendMessage(nil, &callAnswer{Refused: "full"}, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := decodeAnswerOfCall(data); err == nil && (m.Refused != "" || m.Lost != "") {
			t.Errorf("%+v is no error", m)
		}
		var sb sandbox.Sandbox
		if err := decodeResult(data, &sb); err != nil {
			_ = err.Error()
			_ = fault.KindOf(err)
			return
		}
		again, err := encodeValue(&sb)
		if err != nil {
			t.Fatal(err)
		}
		_ = parseMessage(again, &sb)
	})
}
