package state

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Discard returns a file for a sandbox's standard error, which is not read.
//
// It is not /dev/null: runtimes give a sandbox's standard streams to the user
// that the sandbox runs as, and would give away the whole machine's. It is the
// sandbox's own pipe, open for both directions, so that there is no SIGPIPE,
// and non-blocking, so that what does not fit is refused and not waited for.
func Discard() (*os.File, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(ends[1]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a pipe for both directions: %w", err)
	}
	f := os.NewFile(uintptr(fd), "discard")
	// Only now: a file that was non-blocking before would be made blocking when
	// it is handed to a process.
	if err := unix.SetNonblock(fd, true); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
