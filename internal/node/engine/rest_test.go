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
	e.rests.most = time.Hour
	ended := e.rests.begin() // another program, from now on
	used := func(code string) claimed {
		t.Helper()
		for len(e.pool.Missing()) > 0 { // one that was not ready does not wait
			time.Sleep(10 * time.Millisecond)
		}
		j := job(func(j *execution.Job) { j.Code = code })
		c, _, err := e.Claim(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Destroy(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if _, err := c.Run(t.Context(), execution.Program{ID: 1, Language: j.Language, Code: j.Code, Timeout: time.Minute, MaxBytes: 1000}, func(execution.Stream, []byte) {}); err != nil {
			t.Fatal(err)
		}
		return c.(claimed)
	}

	// Nothing else would have these return.
	used("(while :; do :; done) & :").Rest(t.Context())()
	used("(x=$(head -c 100M /dev/zero | tr '\\0' x); sleep 600) & :").Rest(t.Context())()
	dead := used("sleep 600 & :")
	go func() {
		if err := e.host.Kill(context.WithoutCancel(t.Context()), dead.ID()); err != nil {
			t.Error(err)
		}
	}()
	dead.Rest(t.Context())()
	calm := used("sleep 600 & :")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	calm.Rest(ctx)()

	// This waits for the other program's end, and the next one for this one's.
	rested := make(chan func())
	for _, c := range []claimed{calm, used("true")} {
		go func() { rested <- c.Rest(t.Context()) }()
	}
	never := func(what string) {
		t.Helper()
		select {
		case <-rested:
			t.Error(what)
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
	defer e.rests.begin()()
	e.rests.most = restTick
	used("true").Rest(t.Context())()
}

// TestWhatDoesNotRest: sandboxes whose end others may wait for are ended at once.
func TestWhatDoesNotRest(t *testing.T) {
	e := start(t, folder(t), func(c *Config) { c.PoolSize = 1 })
	for name, change := range map[string]func(*execution.Job){
		"none was ready":  func(j *execution.Job) { j.Language = execution.Node },
		"a thread's home": func(j *execution.Job) { j.Thread = &execution.Thread{} },
	} {
		c, _, err := e.Claim(t.Context(), job(change))
		if err != nil {
			t.Fatal(err)
		}
		if c.(claimed).rests != nil {
			t.Errorf("%s, and its end waits", name)
		}
		if err := c.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
