package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// bootID changes with each start of the machine.
const bootID = "/proc/sys/kernel/random/boot_id"

// readMark returns when the process before this one left its mark. It is zero where it has
// left none since the machine started: journals may be gone with a folder in memory, or
// lack what was not on the disk when the machine stopped.
func readMark(path string) (time.Time, error) {
	if path == "" {
		return time.Time{}, nil
	}
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return time.Time{}, nil // it cannot be known here
	}
	mark, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(mark) != string(boot) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// leaveMark says that whatever this process takes on can be found by the next one.
func leaveMark(path string) error {
	if path == "" {
		return nil
	}
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return nil // likewise
	}
	if err := os.WriteFile(path, boot, 0o600); err != nil {
		return fmt.Errorf("leave a mark for the next process: %w", err)
	}
	return nil
}
