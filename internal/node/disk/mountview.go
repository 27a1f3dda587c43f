package disk

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// roots reads what of their file systems the mounts of a process show, by their
// numbers, and where they are.
func roots(pid string) (root, at map[uint64]string) {
	root, at = map[uint64]string{}, map[uint64]string{}
	f, err := os.Open("/proc/" + pid + "/mountinfo")
	if err != nil {
		return root, at
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 5 {
			continue
		}
		if id, err := strconv.ParseUint(field[0], 10, 64); err == nil {
			root[id], at[id] = unescape(field[3]), unescape(field[4])
		}
	}
	return root, at
}

// unescape undoes what the kernel does to blanks and the like in names.
func unescape(name string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(name, `\`)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		n, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8)
		if err != nil {
			out.WriteString(`\` + after)
			return out.String()
		}
		out.WriteByte(byte(n))
		name = after[3:]
	}
}

// place is where a folder is in its file system; "" if that cannot be told.
func place(dir string) string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return ""
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	root, at := roots("self")
	below, err := filepath.Rel(at[st.Mnt_id], dir)
	if err != nil || root[st.Mnt_id] == "" {
		return ""
	}
	return filepath.Join(root[st.Mnt_id], below)
}

// mountView tells whether what a process has open may lie in a folder: not if it was
// opened through a mount that shows another part of the file system.
type mountView struct {
	pid, dir string
	root     map[uint64]string // nil until it is needed
	dirAt    string
}

func (s *mountView) has(fd string) bool {
	if s.root == nil {
		s.root, _ = roots(s.pid)
		s.dirAt = place(s.dir)
	}
	info, err := os.ReadFile("/proc/" + s.pid + "/fdinfo/" + fd)
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(info, []byte("mnt_id:"))
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	id, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	root := s.root[id]
	return err != nil || root == "" || s.dirAt == "" || within(s.dirAt, root) || within(root, s.dirAt)
}

func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
