package atolltest

import (
	"testing"
	"time"
)

// heardTime is more than what Heard waits for takes on a loaded machine.
const heardTime = 3 * time.Minute

// Heard returns what comes from a channel, or that it was closed, and fails the test after three
// minutes without.
func Heard[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(heardTime):
		t.Fatalf("not within %v: %s", heardTime, what)
		panic("unreachable")
	}
}

// Until looks every few milliseconds at first, and less often the longer it waits: a look
// can be a request, and takes from what is waited for.
const (
	look    = 5 * time.Millisecond
	maxLook = 25 * time.Millisecond
)

// Until returns once something holds, and fails the test if it does not within
// the limit. It is for what gives no signal that could be waited on: a figure of
// a server, another process's files.
func Until(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	begun := time.Now()
	timer := time.NewTimer(look)
	defer timer.Stop()
	for !holds() {
		waited := time.Since(begun)
		if waited > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		timer.Reset(min(max(look, waited/20), maxLook))
		<-timer.C
	}
}
