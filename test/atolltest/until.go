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

// look is how often Until looks.
const look = 5 * time.Millisecond

// Until returns once something holds, and fails the test if it does not within
// the limit. It is for what gives no signal that could be waited on: a figure of
// a server, another process's files.
func Until(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for end := time.Now().Add(limit); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
