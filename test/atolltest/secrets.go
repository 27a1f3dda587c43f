package atolltest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// MemoryOf returns a function that reports whether the memory of a live process contains needle. It
// reads all readable mappings at the time of each call and writes nothing to disk. A process that
// changes its memory meanwhile may move a needle past the search, so search for something that must
// be found as well. Only the parent of the process or root may read its memory.
//
// A secret may also be there in another form: look for its hexadecimal digits and its base64, too.
func MemoryOf(t testing.TB, pid int) func(needle []byte) bool {
	t.Helper()
	return func(needle []byte) bool {
		t.Helper()
		found, err := searchMemory(pid, needle)
		if err != nil {
			t.Fatalf("cannot search the memory of process %d: %v", pid, err)
		}
		return found
	}
}

func searchMemory(pid int, needle []byte) (bool, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false, err
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return false, err
	}
	defer mem.Close()
	read := int64(0)
	for line := range strings.Lines(string(maps)) {
		m := &mapping{mem: mem}
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &m.at, &m.end, &mode); n != 3 || mode[0] != 'r' { // [vsyscall] is above int64
			continue
		}
		if found, err := search(m, needle); found || err != nil {
			return found, err
		}
		read += m.read
	}
	if read == 0 {
		return false, errEnded
	}
	return false, nil
}

var errEnded = errors.New("it has no memory; it has ended")

// mapping reads a part of a process's memory.
type mapping struct {
	mem     *os.File
	at, end int64
	read    int64
}

// Read implements io.Reader. It returns zeros for pages that cannot be read: those of the kernel,
// those behind the end of a mapped file, and those that the process has unmapped.
func (m *mapping) Read(p []byte) (int, error) {
	if m.at == m.end {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), m.end-m.at)]
	n, err := unix.Pread(int(m.mem.Fd()), p, m.at)
	switch {
	case errors.Is(err, unix.EIO), errors.Is(err, unix.EFAULT):
		page := int64(os.Getpagesize())
		n = int(min(int64(len(p)), page-m.at%page))
		clear(p[:n])
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errEnded
	default:
		m.read += int64(n)
	}
	m.at += int64(n)
	return n, nil
}

// FilesOf returns a function that returns the path of a file below the folders that contains needle,
// or "" if there is none. It reads regular files, also through mounts but not through symbolic
// links, as they are at the time of each call.
func FilesOf(t testing.TB, folders ...string) func(needle []byte) string {
	t.Helper()
	return func(needle []byte) string {
		t.Helper()
		for _, folder := range folders {
			path, err := searchFolder(folder, needle)
			if err != nil {
				t.Fatalf("cannot search the files in %s: %v", folder, err)
			}
			if path != "" {
				return path
			}
		}
		return ""
	}
}

func searchFolder(folder string, needle []byte) (at string, err error) {
	if _, err := os.Stat(folder); err != nil {
		return "", err
	}
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a server removes files while they are searched
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		found, err := search(file, needle)
		if found {
			at = path
			return fs.SkipAll
		}
		return err
	})
	return at, err
}

// searchBuffer is how much search reads at a time.
const searchBuffer = 1 << 20

// search reports whether r has needle.
func search(r io.Reader, needle []byte) (bool, error) {
	if len(needle) == 0 || len(needle) > searchBuffer/2 {
		return false, fmt.Errorf("a needle has 1 to %d bytes, not %d", searchBuffer/2, len(needle))
	}
	in := bufio.NewReaderSize(r, searchBuffer)
	for {
		part, err := in.Peek(searchBuffer)
		switch {
		case bytes.Contains(part, needle):
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
		if _, err := in.Discard(searchBuffer - len(needle) + 1); err != nil { // a needle may begin in what stays
			return false, err
		}
	}
}
