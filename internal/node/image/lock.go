package image

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked says that another holder has the lock.
var errLocked = errors.New("locked")

// flock opens the file at path, making it if need be, and locks it without
// waiting. The kernel lets go of the lock when the holder ends, however it
// ends. Closing the file unlocks it.
func flock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if err == unix.EWOULDBLOCK {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
