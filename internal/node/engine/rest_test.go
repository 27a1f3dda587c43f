package engine

import (
	"context"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestRest: the end of a used sandbox waits while programs need the processors, but not for
// what its own program has left.
func TestRest(t *testing.T) {
	e := start(t, folder(t), func(c *Config) { c.PoolSize = 1 })
	room := e.rests.room
	e.rests.most = time.Hour
	ended := e.rests.begin() // another program, from now on
	used := func(code string, timeout time.Duration) claimed {
		t.Helper()
		if err := e.AwaitFull(t.Context()); err != nil { // one that was not ready does not wait
			t.Fatal(err)
		}
		j := job(func(j *execution.Job) { j.Code = code })
		c, start, err := e.Claim(t.Context(), j)
		if err != nil || start != execution.StartPooled {
			t.Fatalf("got one that was %s: %v", start, err)
		}
		t.Cleanup(func() {
			if err := c.Destroy(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if _, err := c.Run(t.Context(), execution.Program{ID: 1, Language: j.Language, Code: j.Code, Timeout: timeout, MaxBytes: 1000}, func(execution.Stream, []byte) {}); err != nil {
			t.Fatal(err)
		}
		return c.(claimed)
	}

	// Nothing else would have these return.
	used("(while :; do :; done) & :", time.Minute).Rest(t.Context())()
	used("sleep 600", 100*time.Millisecond).Rest(t.Context())()
	e.rests.cpu = 100 // now that does not matter
	used("head -c 100M /dev/zero > /dev/shm/large", time.Minute).Rest(t.Context())()
	used("(sleep 0.5; head -c 100M /dev/zero > /dev/shm/large; sleep 600) & :", time.Minute).Rest(t.Context())()
	dead := used("sleep 600 & :", time.Minute)
	go func() {
		if err := e.host.Kill(context.WithoutCancel(t.Context()), dead.ID()); err != nil {
			t.Error(err)
		}
	}()
	dead.Rest(t.Context())()
	calm := used("sleep 600 & :", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	calm.Rest(ctx)()
	e.rests.room = 1 << 20
	calm.Rest(t.Context())()
	e.rests.room = room

	// This waits for the other program's end, and the next one for this one's.
	rested := make(chan func())
	for _, c := range []claimed{calm, used("true", time.Minute)} {
		go func() { rested <- c.Rest(t.Context()) }()
	}
	never := func(what string) {
		t.Helper()
		select {
		case <-rested:
			t.Fatal(what)
		case <-time.After(3 * restTick):
		}
	}
	never("one ends beside a program")
	ended()
	done := <-rested
	never("two end at the same time")
	done()
	(<-rested)()

	// Nor does it wait for longer than it may.
	last := e.rests.begin()
	e.rests.most = restTick
	used("true", time.Minute).Rest(t.Context())()
	if last(); e.rests.running != 0 || e.rests.room != room || len(e.rests.turn) > 0 {
		t.Errorf("%d programs run, %d bytes are in use, %d have the turn", e.rests.running, room-e.rests.room, len(e.rests.turn))
	}
}

// TestWhatDoesNotRest: sandboxes whose end others may wait for are ended at once, and so are
// those that ran nothing.
func TestWhatDoesNotRest(t *testing.T) {
	e := start(t, folder(t), func(c *Config) { c.PoolSize = 1 })
	e.rests.most = time.Hour
	defer e.rests.begin()()
	for name, change := range map[string]func(*execution.Job){
		"unused":          nil,
		"none was ready":  func(j *execution.Job) { j.Limits.Processes-- }, // another environment
		"a thread's home": func(j *execution.Job) { j.Thread = &execution.Thread{} },
	} {
		if err := e.AwaitFull(t.Context()); err != nil {
			t.Fatal(err)
		}
		c, _, err := e.Claim(t.Context(), job(change))
		if err != nil {
			t.Fatal(err)
		}
		if rests := c.(claimed).rest != nil; rests != (change == nil) {
			t.Errorf("%s, and its end may wait: %v", name, rests)
		}
		c.(claimed).Rest(t.Context())()
		if err := c.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
