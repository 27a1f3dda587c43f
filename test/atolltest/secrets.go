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

// Needles are byte strings to search for, by name.
type Needles map[string][]byte

// InMemory returns the names of the needles that the memory of a live process contains. It reads all
// readable mappings once and writes nothing to disk. A process that changes its memory meanwhile may
// move a needle past the search, so search for something that must be found as well. Only the parent
// of the process or root may read its memory.
//
// A secret may also be there in another form: look for its hexadecimal digits and its base64, too.
func InMemory(t testing.TB, pid int, needles Needles) map[string]bool {
	t.Helper()
	found, err := searchMemory(pid, needles)
	if err != nil {
		t.Fatalf("cannot search the memory of process %d: %v", pid, err)
	}
	return found
}

func searchMemory(pid int, needles Needles) (map[string]bool, error) {
	found := map[string]bool{}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	read := int64(0)
	for line := range strings.Lines(string(maps)) {
		m := &mapping{mem: mem}
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &m.at, &m.end, &mode); n != 3 || mode[0] != 'r' { // [vsyscall] is above int64
			continue
		}
		if err := search(m, needles, func(name string) { found[name] = true }); err != nil {
			return nil, err
		}
		read += m.read
	}
	if read == 0 {
		return nil, errEnded
	}
	return found, nil
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

// InFiles returns, for each needle that a file below the folders contains, the path of such a file. It
// reads regular files once, also through mounts but not through symbolic links.
func InFiles(t testing.TB, needles Needles, folders ...string) map[string]string {
	t.Helper()
	at := map[string]string{}
	for _, folder := range folders {
		if err := searchFolder(folder, needles, at); err != nil {
			t.Fatalf("cannot search the files in %s: %v", folder, err)
		}
	}
	return at
}

func searchFolder(folder string, needles Needles, at map[string]string) error {
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
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
		return search(file, needles, func(name string) { at[name] = path })
	})
}

// searchBuffer is how much search reads at a time.
const searchBuffer = 1 << 20

// search calls found with the name of each needle that r contains, at least once.
func search(r io.Reader, needles Needles, found func(name string)) error {
	longest := 0
	for name, needle := range needles {
		if len(needle) == 0 || len(needle) > searchBuffer/2 {
			return fmt.Errorf("a needle has 1 to %d bytes, and %q has %d", searchBuffer/2, name, len(needle))
		}
		longest = max(longest, len(needle))
	}
	if longest == 0 {
		return errors.New("there are no needles")
	}
	in := bufio.NewReaderSize(r, searchBuffer)
	for {
		part, err := in.Peek(searchBuffer)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for name, needle := range needles {
			if bytes.Contains(part, needle) {
				found(name)
			}
		}
		if err != nil {
			return nil //nolint:nilerr // the end
		}
		if _, err := in.Discard(searchBuffer - longest + 1); err != nil { // a needle may begin in what stays
			return err
		}
	}
}
