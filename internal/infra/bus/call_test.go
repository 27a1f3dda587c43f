package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/test/atolltest"
)

const (
	callEcho  = remote.Call[string, string]("echo") // answers with the sender before the argument
	callBig   = remote.Call[int, []byte]("big")
	callFail  = remote.Call[string, remote.None]("fail")
	callWait  = remote.Call[string, string]("wait")
	callSink  = remote.Call[[]byte, int]("sink")
	callSkill = remote.Call[int, []execution.SkillFile]("skill")
)

// shortCalls are times for tests in which a side goes away.
var shortCalls = callTimes{beat: 100 * time.Millisecond, silence: 2 * time.Second, again: 200 * time.Millisecond, grace: 200 * time.Millisecond}

// answerer has handlers of the calls above.
type answerer struct {
	name  string
	fails map[string]error
	calls atomic.Int64
	begun chan string
	ended chan error
	free  chan struct{} // ends calls that wait
}

func newAnswerer(name string) *answerer {
	return &answerer{name: name, fails: map[string]error{}, begun: make(chan string, 10_000), ended: make(chan error, 10_000), free: make(chan struct{})}
}

func (s *answerer) handlers() remote.Handlers {
	h := remote.Handlers{}
	callEcho.Handle(h, func(_ context.Context, from, in string) (string, error) {
		s.calls.Add(1)
		return from + ">" + s.name + ":" + in, nil
	})
	callBig.Handle(h, func(_ context.Context, _ string, n int) ([]byte, error) { return pattern(n), nil })
	callFail.Handle(h, func(_ context.Context, _, in string) (remote.None, error) {
		if in == "panic" {
			panic("a test")
		}
		return remote.None{}, s.fails[in]
	})
	callWait.Handle(h, func(ctx context.Context, _, in string) (string, error) {
		s.begun <- in
		select {
		case <-s.free:
			return "done", nil
		case <-ctx.Done():
			s.ended <- context.Cause(ctx)
			return "", ctx.Err()
		}
	})
	callSink.Handle(h, func(_ context.Context, _ string, in []byte) (int, error) { return len(in), nil })
	callSkill.Handle(h, func(_ context.Context, _ string, n int) (all []execution.SkillFile, err error) {
		for i := range n {
			all = append(all, execution.SkillFile{Path: fmt.Sprint("/", i), Exec: i%2 == 0, Data: pattern(100)})
		}
		return all, nil
	})
	return h
}

// pattern returns n bytes without repetition.
func pattern(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// answerExecutors has a gateway answer until the test ends.
func answerExecutors(t testing.TB, b *Bus, s *answerer) (stop func()) {
	t.Helper()
	stop, err := b.AnswerExecutors(s.handlers())
	return stopOnce(t, stop, err)
}

func answerGateways(t testing.TB, b *Bus, s *answerer) (stop func()) {
	t.Helper()
	stop, err := b.AnswerGateways(s.handlers())
	return stopOnce(t, stop, err)
}

func stopOnce(t testing.TB, stop func(), err error) func() {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	once := sync.OnceFunc(stop)
	t.Cleanup(once)
	return once
}

func TestCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, time.Minute)
		for want, by := range map[string]remote.Caller{"no gateway answers": b.Gateways(), "no executor answers": b.Executors(), `executor "gw" does not answer`: b.ExecutorNamed("gw"), `executor "a.*" does not answer`: b.ExecutorNamed("a.*")} {
			_, err := callEcho.Do(ctx, by, "x")
			wantFault(t, err, fault.Unavailable, want)
		}
		s := newAnswerer("s")
		answerExecutors(t, b, s)
		answerGateways(t, b, s)
		for _, by := range []remote.Caller{b.Gateways(), b.Executors(), b.ExecutorNamed("gw")} {
			if got, err := callEcho.Do(ctx, by, "ä\xff"); err != nil || got != "gw>s:ä\xff" {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := callBig.Do(ctx, by, 8<<20); err != nil || !bytes.Equal(got, pattern(8<<20)) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if got, err := callSink.Do(ctx, by, make([]byte, 7<<20)); err != nil || got != 7<<20 {
				t.Errorf("sent %d bytes, %v", got, err)
			}
		}
		if got, err := callSkill.Do(ctx, b.Gateways(), 50_000); err != nil || len(got) != 50_000 || got[49_999].Path != "/49999" || !bytes.Equal(got[7].Data, pattern(100)) {
			t.Errorf("got %d files, %v", len(got), err)
		}
		for _, n := range []int{0, 1, firstPiece - 100, firstPiece, firstPiece + 1, maxPiece, maxPiece + 1} {
			if got, err := callBig.Do(ctx, b.Gateways(), n); err != nil || !bytes.Equal(got, pattern(n)) {
				t.Errorf("of %d bytes: got %d, %v", n, len(got), err)
			}
		}
		_, err := callSink.Do(ctx, b.Gateways(), make([]byte, 9<<20))
		wantFault(t, err, fault.TooLarge, "the call sink has 9437")
		_, err = callBig.Do(ctx, b.Gateways(), maxAnswer)
		wantFault(t, err, fault.TooLarge, "the answer of the call big has")
		err = b.Gateways().Call(ctx, "other", 1, nil)
		wantFault(t, err, fault.Unavailable, `does not know the call "other"`)
		err = b.Gateways().Call(ctx, string(callEcho), []int{1}, nil)
		wantFault(t, err, fault.Invalid, "the call echo cannot be read")
		var n int
		err = b.Gateways().Call(ctx, string(callEcho), "x", &n)
		wantFault(t, err, fault.Internal, "cannot read the answer")
		err = b.Gateways().Call(ctx, string(callEcho), make(chan int), nil)
		wantFault(t, err, fault.Internal, "cannot encode the call")
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := callEcho.Do(gone, b.Gateways(), "x"); !errors.Is(err, context.Canceled) || fault.KindOf(err) != fault.Unavailable {
			t.Error(err)
		}
	})
}

// TestCallErrors checks that errors arrive as they are.
func TestCallErrors(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 30*time.Second)
	s := newAnswerer("s")
	for kind := fault.Internal; kind <= fault.Unsupported; kind++ {
		s.fails[fmt.Sprint(kind)] = &fault.Error{Kind: kind, Msg: "a message", Err: io.ErrUnexpectedEOF, Code: "code", Dimension: "concurrency", ResetsAt: time.Unix(5, 7).UTC(), RetryAfter: 7 * time.Second}
	}
	for name, err := range map[string]error{"not found": sandbox.ErrNotFound, "key": sandbox.ErrNoValidKey, "eof": io.EOF, "wrapped": fmt.Errorf("x: %w", sandbox.ErrNoSnapshot), "plain": errors.New("plain")} {
		s.fails[name] = err
	}
	answerExecutors(t, b, s)
	for name, want := range s.fails {
		_, err := callFail.Do(ctx, b.Gateways(), name)
		if err == nil || err.Error() != want.Error() || errors.Is(err, io.ErrUnexpectedEOF) != errors.Is(want, io.ErrUnexpectedEOF) || errors.Is(err, sandbox.ErrNoSnapshot) != errors.Is(want, sandbox.ErrNoSnapshot) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		got, _ := errors.AsType[*fault.Error](err)
		f, _ := errors.AsType[*fault.Error](want)
		if (got == nil) != (f == nil) || f != nil && (got.Kind != f.Kind || got.Msg != f.Msg || got.Code != f.Code || got.Dimension != f.Dimension || !got.ResetsAt.Equal(f.ResetsAt) || got.RetryAfter != f.RetryAfter) {
			t.Errorf("%s: got %+v, want %+v", name, got, f)
		}
	}
	if _, err := callFail.Do(ctx, b.Gateways(), "not found"); err != sandbox.ErrNotFound {
		t.Errorf("got %v", err)
	}
	_, err := callFail.Do(ctx, b.Gateways(), "panic")
	wantFault(t, err, fault.Internal, "the call failed on another server")
	if _, err := callFail.Do(ctx, b.Gateways(), "none"); err != nil {
		t.Error(err)
	}
}

// TestCallValues checks that values arrive exactly as they were sent.
func TestCallValues(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 30*time.Second)
	h := remote.Handlers{}
	answers := []func(){
		roundTrip(t, ctx, b, h, full[sandbox.Sandbox](), sandbox.Sandbox{}, sandbox.Sandbox{Mounts: nil, Env: map[string]string{}}),
		roundTrip(t, ctx, b, h, full[sandbox.Grant](), sandbox.Grant{}, sandbox.Grant{Credits: 0.1, Secrets: []string{}, Variables: map[string]string{"": "\xff"}}),
		roundTrip(t, ctx, b, h, full[sandbox.Snapshot](), sandbox.Snapshot{}),
		roundTrip(t, ctx, b, h, full[requirement.Build](), requirement.Build{}),
		roundTrip(t, ctx, b, h, []execution.SkillFile{full[execution.SkillFile](), {Data: []byte{}}, {}}, nil, []execution.SkillFile{}),
		roundTrip(t, ctx, b, h, &sandbox.Sandbox{}, nil),
		roundTrip(t, ctx, b, h, time.Time{}, time.Unix(-1, 1).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)),
	}
	stop, err := b.AnswerExecutors(h)
	stopOnce(t, stop, err)
	for _, f := range answers {
		f()
	}
	times := remote.Call[time.Time, time.Time]("time.Time")
	there := time.Now().In(time.FixedZone("there", -5*3600-1800))
	if got, err := times.Do(ctx, b.Gateways(), there); err != nil || !got.Equal(there) || got.Format(time.RFC3339Nano) != there.Format(time.RFC3339Nano) {
		t.Errorf("%v came back as %v, %v", there, got, err)
	}
}

// full returns a value in which every field is set. It fails for a type with unexported fields.
func full[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func roundTrip[T any](t *testing.T, ctx context.Context, b *Bus, h remote.Handlers, values ...T) func() {
	call := remote.Call[T, T](reflect.TypeFor[T]().String())
	call.Handle(h, func(_ context.Context, _ string, in T) (T, error) { return in, nil })
	return func() {
		for _, v := range values {
			if got, err := call.Do(ctx, b.Gateways(), v); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("%s: %+v came back as %+v, %v", call, v, got, err)
			}
		}
	}
}

// TestGatewaysShareCalls sends calls to two gateways, one of which stops.
func TestGatewaysShareCalls(t *testing.T) {
	url := startServer(t).url()
	x := open(t, Config{URL: url, Name: "exe_1"})
	one, two := newAnswerer("gw_1"), newAnswerer("gw_2")
	stop := answerExecutors(t, open(t, Config{URL: url, Name: "gw_1"}), one)
	answerExecutors(t, open(t, Config{URL: url, Name: "gw_2"}), two)
	ctx := deadline(t, time.Minute)
	both := make(chan struct{}, 1)
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			for j := range 40 {
				in := fmt.Sprint(i, ".", j)
				got, err := callEcho.Do(ctx, x.Gateways(), in)
				if err != nil || got != "exe_1>gw_1:"+in && got != "exe_1>gw_2:"+in {
					t.Errorf("got %q, %v", got, err)
				}
				if one.calls.Load() > 0 && two.calls.Load() > 0 {
					select {
					case both <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	select {
	case <-both:
	case <-ctx.Done():
		t.Error("one gateway answers all calls")
	}
	stop()
	callers.Wait()
	if n := one.calls.Load() + two.calls.Load(); n != 2000 {
		t.Errorf("%d calls ran", n)
	}
}

// TestExecutorsAreNamed sends calls to one of two executors.
func TestExecutorsAreNamed(t *testing.T) {
	url := startServer(t).url()
	g := open(t, Config{URL: url, Name: "gw"})
	for _, name := range []string{"exe_1", "exe_2"} {
		answerGateways(t, open(t, Config{URL: url, Name: name}), newAnswerer(name))
	}
	ctx := deadline(t, time.Minute)
	for i := range 20 {
		name := fmt.Sprint("exe_", 1+i%2)
		if got, err := callEcho.Do(ctx, g.ExecutorNamed(name), "x"); err != nil || got != "gw>"+name+":x" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	_, err := callEcho.Do(ctx, g.ExecutorNamed("exe_3"), "x")
	wantFault(t, err, fault.Unavailable, `executor "exe_3" does not answer`)
	if got, err := callEcho.Do(ctx, g.Executors(), "x"); err != nil || !strings.HasPrefix(got, "gw>exe_") {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestLargeAnswers fetches many large answers at once, beside small calls.
func TestLargeAnswers(t *testing.T) {
	url := startServer(t, "max_payload: 8MB\nmax_pending: 16MB\n").url()
	g, x := open(t, Config{URL: url, Name: "gw"}), open(t, Config{URL: url, Name: "exe_1"})
	s := newAnswerer("s")
	answerExecutors(t, g, s)
	ctx := deadline(t, 2*time.Minute)
	if got, err := callBig.Do(ctx, x.Gateways(), 20<<20); err != nil || !bytes.Equal(got, pattern(20<<20)) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	var callers sync.WaitGroup
	want := pattern(3 << 20)
	for range 24 {
		callers.Go(func() {
			if got, err := callBig.Do(ctx, x.Gateways(), 3<<20); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
	for range 200 {
		callers.Go(func() {
			if _, err := callEcho.Do(ctx, x.Gateways(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := x.fetching.Load(); n != 0 {
		t.Errorf("%d calls fetch answers", n)
	}
}

// TestCallLimits checks that an executor cannot take all calls of a gateway.
func TestCallLimits(t *testing.T) {
	url := startServer(t).url()
	g, x, other := open(t, Config{URL: url, Name: "gw"}), open(t, Config{URL: url, Name: "exe_1"}), open(t, Config{URL: url, Name: "exe_2"})
	s := newAnswerer("s")
	answerExecutors(t, g, s)
	ctx := deadline(t, time.Minute)
	var callers sync.WaitGroup
	for range maxCallsOf {
		callers.Go(func() {
			if got, err := callWait.Do(ctx, x.Gateways(), "x"); err != nil || got != "done" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for range maxCallsOf {
		<-s.begun
	}
	_, err := callEcho.Do(ctx, x.Gateways(), "x")
	wantFault(t, err, fault.Unavailable, "too many calls at once")
	if _, err := callEcho.Do(ctx, other.Gateways(), "x"); err != nil {
		t.Error(err)
	}
	close(s.free)
	callers.Wait()
	if _, err := callEcho.Do(ctx, x.Gateways(), "x"); err != nil {
		t.Error(err)
	}
}

// TestCallsEnd checks that calls end with their callers, their deadlines and their servers.
func TestCallsEnd(t *testing.T) {
	times := shortCalls
	times.beat, times.silence = 50*time.Millisecond, time.Second
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", calls: times})
	s := newAnswerer("s")
	stop := answerExecutors(t, b, s)

	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error, 10)
	go func() { _, err := callWait.Do(ctx, b.Gateways(), "x"); got <- err }()
	<-s.begun
	because := errors.New("a test")
	cancel(because)
	if err := <-got; !errors.Is(err, because) || fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	if err := <-s.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler ended by %v", err)
	}

	timed, cancelTimed := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelTimed()
	if _, err := callWait.Do(timed, b.Gateways(), "x"); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	<-s.begun
	<-s.ended

	// A call that takes longer than the silence, with beats.
	go func() { _, err := callWait.Do(t.Context(), b.Gateways(), "x"); got <- err }()
	time.Sleep(times.silence + times.silence/4)
	s.free <- struct{}{}
	if err := <-got; err != nil {
		t.Error(err)
	}

	// stop cancels calls that outlast the grace period.
	for range 3 {
		go func() { _, err := callWait.Do(t.Context(), b.Gateways(), "x"); got <- err }()
	}
	for range 4 { // with the one before
		<-s.begun
	}
	stop()
	for range 3 {
		if err := <-got; fault.KindOf(err) != fault.Unavailable || errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	_, err := callEcho.Do(t.Context(), b.Gateways(), "x")
	wantFault(t, err, fault.Unavailable, "no gateway answers")
}

// TestStopWaits checks that calls which end soon are not cancelled by stop.
func TestStopWaits(t *testing.T) {
	b := embedded(t)
	s := newAnswerer("s")
	stop := answerGateways(t, b, s)
	got := make(chan error, 1)
	go func() { _, err := callWait.Do(t.Context(), b.Executors(), "x"); got <- err }()
	<-s.begun
	done := make(chan struct{})
	go func() {
		defer close(done)
		stop()
	}()
	atolltest.Until(t, 10*time.Second, "the server takes no calls", func() bool {
		_, err := callEcho.Do(t.Context(), b.Executors(), "x")
		return err != nil
	})
	select {
	case <-done:
		t.Error("stop did not wait")
	default:
	}
	close(s.free)
	if err := <-got; err != nil {
		t.Error(err)
	}
	<-done
}

// TestServerDisappears ends a server while it runs calls and sends answers.
func TestServerDisappears(t *testing.T) {
	url := startServer(t).url()
	times := shortCalls
	times.silence = 300 * time.Millisecond // also if that is too short, the answer is the same
	x := open(t, Config{URL: url, Name: "exe_1", calls: times})
	g, err := Open(t.Context(), Config{URL: url, Name: "gw", Log: discard, calls: shortCalls})
	if err != nil {
		t.Fatal(err)
	}
	s := newAnswerer("s")
	stop, err := g.AnswerExecutors(s.handlers())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 10)
	go func() { _, err := callWait.Do(t.Context(), x.Gateways(), "x"); got <- err }()
	<-s.begun
	g.data.Close() // as a crash does
	if err := <-got; fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "may have run") {
		t.Error(err)
	}
	stop()
	_ = g.Close()
}

// TestNATSRestarts restarts the NATS server while calls run.
func TestNATSRestarts(t *testing.T) {
	nats := startServer(t)
	times := shortCalls
	times.silence = 500 * time.Millisecond // callers call again if that is too short
	g, x := open(t, Config{URL: nats.url(), Name: "gw", calls: times}), open(t, Config{URL: nats.url(), Name: "exe_1", calls: times})
	s := newAnswerer("s")
	answerExecutors(t, g, s)
	ctx := deadline(t, time.Minute)
	want := pattern(2 << 20)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var answered atomic.Int64
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := callBig.Do(ctx, x.Gateways(), 2<<20)
				switch {
				case err == nil && bytes.Equal(got, want):
					answered.Add(1)
				case fault.KindOf(err) != fault.Unavailable:
					t.Errorf("got %d bytes, %v", len(got), err)
				default:
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	for range 3 {
		before := answered.Load()
		atolltest.Until(t, 30*time.Second, "calls are answered", func() bool { return answered.Load() > before+4 })
		nats.kill()
		_, err := callEcho.Do(ctx, x.Gateways(), "x")
		wantFault(t, err, fault.Unavailable, "")
		nats.start()
	}
	before := answered.Load()
	atolltest.Until(t, 30*time.Second, "calls are answered", func() bool { return answered.Load() > before+16 })
	close(stop)
	callers.Wait()
}

// TestCallPermissions has NATS restrict an executor to its own name.
func TestCallPermissions(t *testing.T) {
	s := startServer(t, `max_payload: 8MB
authorization {users: [
  {user: gw, password: secret}
  {user: exe, password: secret, permissions: {
    publish: {allow: ["$JS.API.>", "$KV.>", "atoll.log.>", "atoll.result.>", "atoll.starts.>", "atoll.control.exe_1", "atoll.control.exe_1.>"]}
    subscribe: {allow: ["_INBOX.exe_1.>", "atoll.command.>"]}
  }}
]}
`)
	url := func(user string) string { return strings.Replace(s.url(), "nats://", "nats://"+user+":secret@", 1) }
	g := open(t, Config{URL: url("gw"), Name: "gw"})
	answerExecutors(t, g, newAnswerer("gw"))
	x := open(t, Config{URL: url("exe"), Name: "exe_1"})
	answerGateways(t, x, newAnswerer("exe_1"))
	ctx := deadline(t, 30*time.Second)
	if got, err := callEcho.Do(ctx, x.Gateways(), "x"); err != nil || got != "exe_1>gw:x" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := callBig.Do(ctx, x.Gateways(), 1<<20); err != nil || len(got) != 1<<20 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	base := x.names.control + "exe_2"
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if got, err := callEcho.Do(short, caller{x, base, base, ""}, "x"); err == nil {
		t.Errorf("a call in another name was answered with %q", got)
	}
}
