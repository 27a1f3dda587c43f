package guestinit

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

const errConfined = failure("the rules of this sandbox were given already, or programs have run in it")

// confine takes the rules of the sandbox. Paths are mounted at once, so that what
// starts now has them under its feet; they become read-only with seal, since
// process 1 still writes there to start an interpreter.
func (s *supervisor) confine(m *wire.ConfineMessage) error {
	if s.confined || s.warm != nil || len(s.runs) > 0 || s.dirty || s.own != nil {
		return errConfined
	}
	s.confined, s.rules, rootPrograms = true, *m, m.Root
	if !s.restrictsFiles() {
		return nil
	}
	if err := s.keepOwn(); err != nil {
		return err
	}
	if err := s.keepHome(); err != nil {
		return err
	}
	return s.hold("/")
}

// keepOwn keeps a way to write where process 1 itself does, when the rules have made that
// read-only: the name of the machine changes when the sandbox wakes, and skills come later.
func (s *supervisor) keepOwn() (err error) {
	if s.machine, err = kept(path.Dir(machineID)); err != nil {
		return err
	}
	if err := present(generationDir, false); err != nil {
		return err
	}
	if s.generation, err = kept(generationDir); err != nil {
		return err
	}
	_ = s.haveReadOnly(0) // an image that has something else there is used as it is
	return nil
}

// hold mounts what the rules say of paths in a folder that has just been put in
// place. In any folder but the root, which is the image's, links may be a
// program's: none is followed.
func (s *supervisor) hold(folder string) error {
	type rule struct {
		path string
		kind byte
	}
	var rules []rule
	for _, list := range []struct {
		kind  byte
		paths []string
	}{{'w', s.rules.Writable}, {'r', s.rules.ReadOnly}, {'b', s.rules.Blocked}} {
		for _, path := range list.paths {
			if path != folder && under(folder, path) {
				rules = append(rules, rule{path, list.kind})
			}
		}
	}
	// What is deeper is mounted later, so that it lies on top.
	slices.SortStableFunc(rules, func(a, b rule) int { return len(a.path) - len(b.path) })
	for _, r := range rules {
		if folder != "/" && linked(folder, r.path) {
			return failure("a link is in the way of the rule on " + r.path)
		}
		if err := present(r.path, r.kind == 'w'); err != nil {
			return err
		}
		var err error
		if r.kind == 'b' {
			err = cover(r.path)
		} else {
			err = unix.Mount(r.path, r.path, "", unix.MS_BIND|unix.MS_REC, "") // with what is mounted below it
		}
		if err != nil {
			return step("mount "+r.path, err)
		}
	}
	return nil
}

// linked reports whether there is a link between a folder and a path in it.
func linked(folder, path string) bool {
	for i := len(folder) + 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(path[:i], &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return true
		}
	}
	return false
}

// keepHome keeps a way to write a program into a home that is not to be written.
func (s *supervisor) keepHome() error {
	if s.mayWrite(wire.Home) {
		return nil
	}
	fd, err := kept(wire.Home)
	if err != nil {
		return err
	}
	if s.home >= 0 {
		raw.Close(s.home)
	}
	s.home = fd
	return nil
}

func (s *supervisor) restrictsFiles() bool {
	return s.rules.Listed || len(s.rules.ReadOnly) > 0 || len(s.rules.Blocked) > 0
}

// kept returns a descriptor of a folder through which it can be written to
// whatever becomes of the mounts.
func kept(path string) (int, error) {
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		return -1, step("mount "+path, err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Unmount(path, unix.MNT_DETACH)
	}
	return fd, step("keep "+path, err)
}

// present makes a folder where there is nothing: the user's, if it may write.
func present(path string, users bool) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		err := unix.Mkdir(path[:i], 0o755)
		if err == nil && users && i == len(path) {
			if !rootPrograms {
				err = unix.Chown(path, wire.UID, wire.GID)
			}
		}
		if err == nil || err == unix.EEXIST {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(path[:i], &st) != nil {
			return step("make "+path[:i], err)
		}
	}
	return nil
}

// cover puts something over a path that only process 1 could read.
func cover(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Mount("blocked", path, "tmpfs", flags, "mode=000,size=4096")
	}
	if err := unix.Mount(hooks+"/blocked", path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")
}

// seal makes read-only what the rules say, before a program runs. It changes
// mounts, so a waiting interpreter that stands on them is bound as well. A home
// that was put in place since is brought under the rules too.
func (s *supervisor) seal() error {
	if !s.restrictsFiles() {
		return nil
	}
	table, err := mountTable()
	if err != nil || table == s.sealed {
		return err
	}
	folder := "/"
	if s.sealed != "" {
		folder = wire.Home
		if err := s.keepHome(); err != nil {
			return err
		}
		if err := s.hold(folder); err != nil {
			return err
		}
		if table, err = mountTable(); err != nil {
			return err
		}
	}
	for _, m := range parseMounts(table) {
		if !under(folder, m.path) || s.exempt(m.path) {
			continue
		}
		flags := m.flags | unix.MS_REMOUNT | unix.MS_BIND
		switch may := s.mayWrite(m.path); {
		case may && folder == "/":
			continue // its mount says whether it can be written
		case !may:
			flags |= unix.MS_RDONLY
		}
		if err := unix.Mount("", m.path, "", flags, ""); err != nil {
			return step("bind "+m.path+" to its rule", err)
		}
	}
	s.sealed, err = mountTable()
	return err
}

// exempt are the mounts that are the sandbox's own, also those of the guest whose
// names begin with a dot: no user keeps files there, and programs need what is
// written in /dev/shm, unless a rule names it.
func (s *supervisor) exempt(path string) bool {
	for _, own := range []string{"/proc", "/sys", "/dev", "/."} {
		if under(own, path) || own == "/." && strings.HasPrefix(path, own) {
			return !slices.ContainsFunc(s.rules.ReadOnly, func(p string) bool { return under(p, path) })
		}
	}
	return slices.Contains(s.rules.Blocked, path)
}

// mayWrite reports whether the longest rule that holds a path lets it be written.
func (s *supervisor) mayWrite(path string) bool {
	writable, longest := !s.rules.Listed, -1
	for _, p := range s.rules.Writable {
		if under(p, path) && len(p) > longest {
			writable, longest = true, len(p)
		}
	}
	for _, p := range s.rules.ReadOnly {
		if under(p, path) && len(p) >= longest {
			writable, longest = false, len(p)
		}
	}
	return writable
}

// under reports whether a path is a folder or in it.
func under(folder, path string) bool {
	return folder == "/" || path == folder || strings.HasPrefix(path, folder+"/")
}

type mountPoint struct {
	path  string
	flags uintptr // those that a remount must name again
}

// mountTable returns what is mounted, as the kernel writes it.
func mountTable() (string, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", step("mountinfo", err)
	}
	defer unix.Close(fd)
	var text []byte
	for b := make([]byte, 16<<10); ; {
		n, err := unix.Read(fd, b)
		if err != nil {
			return "", step("mountinfo", err)
		}
		if n == 0 {
			return string(text), nil
		}
		text = append(text, b[:n]...)
	}
}

// parseMounts reads lines as of /proc/self/mountinfo.
func parseMounts(text string) (list []mountPoint) {
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		m := mountPoint{path: unescape(f[4])}
		for option := range strings.SplitSeq(f[5], ",") {
			switch option {
			case "nosuid":
				m.flags |= unix.MS_NOSUID
			case "nodev":
				m.flags |= unix.MS_NODEV
			case "noexec":
				m.flags |= unix.MS_NOEXEC
			case "noatime":
				m.flags |= unix.MS_NOATIME
			}
		}
		list = append(list, m)
	}
	return list
}

// unescape reads the octal forms that the kernel writes white space and
// backslashes in.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
