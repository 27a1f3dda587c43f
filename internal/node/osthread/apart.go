// Package osthread runs a function on an operating system thread of its own, which ends
// with it: the function may enter another namespace or control group than the process's.
package osthread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Do runs f on a thread that ends with it, so that no other goroutine ever runs
// where f has taken it.
func Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot end. While this goroutine holds it, another
			// one cannot get it.
			defer runtime.UnlockOSThread()
			done <- Do(f)
			return
		}
		done <- f() // not unlocked
	}()
	return <-done
}
