package rootless

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// idRange is a part of a map: Count ids from Inside on are those from Outside on.
type idRange struct{ inside, outside, count uint64 }

// nobodyID is the user that sandboxes' kernels run as, so it must be mapped.
const nobodyID = 65534

// layOut puts the caller at 0 and subordinate ids behind it, without a gap
// except before the user nobody: where they do not reach it, the last one stands for it.
func layOut(caller uint64, subordinate []idRange) []idRange {
	ranges := []idRange{{0, caller, 1}}
	next := uint64(1)
	for _, s := range subordinate {
		ranges = append(ranges, idRange{next, s.outside, s.count})
		next += s.count
	}
	if len(subordinate) > 0 && next <= nobodyID {
		last := &ranges[len(ranges)-1]
		last.count--
		ranges = append(ranges, idRange{nobodyID, last.outside + last.count, 1})
		if last.count == 0 {
			ranges = append(ranges[:len(ranges)-2], ranges[len(ranges)-1])
		}
	}
	return ranges
}

// maxRanges is how many subordinate ranges are used: a map holds few extents.
const maxRanges = 16

// subordinateIDs reads the ranges that a file such as /etc/subuid grants to a
// user, by name or by number.
func subordinateIDs(file, name string, id int) ([]idRange, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var ranges []idRange
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 || fields[0] != name && fields[0] != strconv.Itoa(id) {
			continue
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && count > 0 && len(ranges) < maxRanges {
			ranges = append(ranges, idRange{outside: first, count: count})
		}
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("%s grants nothing to %s", file, name)
	}
	return ranges, nil
}

// identity is the map of everyone we know to themselves.
func identity(file string) ([]idRange, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var ranges []idRange
	for line := range strings.Lines(string(data)) {
		var r idRange
		if _, err := fmt.Sscan(line, &r.inside, &r.outside, &r.count); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.outside = r.inside
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// Subordinate reports why the caller has no subordinate users and groups to
// give to a namespace, and how to mend it; nil when it has.
func Subordinate() error {
	_, _, err := subordinate()
	return err
}

// grants are the ranges of one kind of id and the program that writes them.
type grants struct {
	program string
	ranges  []idRange
}

func subordinate() (uids, gids grants, err error) {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	for _, k := range []struct {
		to            *grants
		program, file string
		id            int
	}{
		{&uids, "newuidmap", "/etc/subuid", os.Getuid()},
		{&gids, "newgidmap", "/etc/subgid", os.Getuid()}, // by user here, too
	} {
		path, missing := exec.LookPath(k.program)
		ranges, none := subordinateIDs(k.file, name, k.id)
		if missing != nil {
			err = errors.Join(err, fmt.Errorf("%s is missing (apt-get install uidmap)", k.program))
		}
		if none != nil {
			err = errors.Join(err, fmt.Errorf("%w (usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s)", none, name))
		}
		*k.to = grants{program: path, ranges: ranges}
	}
	return uids, gids, err
}

// writeMaps fills the maps of a process's new user namespace. Alone says why
// the caller is its only user, "" when there are others.
func writeMaps(pid int) (alone string, err error) {
	if os.Geteuid() == 0 {
		return "", writeIdentity(pid)
	}
	uids, gids, err := subordinate()
	if err == nil {
		if err = runMapper(uids, pid, os.Geteuid()); err == nil {
			err = runMapper(gids, pid, os.Getegid())
		}
	}
	if err == nil {
		return "", nil
	}
	alone = strings.ReplaceAll(err.Error(), "\n", "; ")
	// A map that the first of the two has written stays, and cannot be written again.
	for _, m := range []struct {
		file string
		id   int
	}{{"uid_map", os.Geteuid()}, {"gid_map", os.Getegid()}} {
		path := procPath(pid, m.file)
		if written, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(written)) > 0 {
			continue
		}
		if m.file == "gid_map" {
			// Without this, giving up a group could open what is closed to it.
			if err := os.WriteFile(procPath(pid, "setgroups"), []byte("deny"), 0); err != nil {
				return "", err
			}
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, "0 %d 1\n", m.id), 0); err != nil {
			return "", err
		}
	}
	return alone, nil
}

func writeIdentity(pid int) error {
	for _, file := range []string{"uid_map", "gid_map"} {
		ranges, err := identity("/proc/self/" + file)
		if err != nil {
			return err
		}
		var text []byte
		for _, r := range ranges {
			text = fmt.Appendf(text, "%d %d %d\n", r.inside, r.outside, r.count)
		}
		if err := os.WriteFile(procPath(pid, file), text, 0); err != nil {
			return err
		}
	}
	return nil
}

// runMapper has newuidmap or newgidmap write a map. They are set-uid root and
// check that the ranges are granted to the caller, and that the process is the
// caller's.
func runMapper(g grants, pid, caller int) error {
	args := []string{strconv.Itoa(pid)}
	for _, r := range layOut(uint64(caller), g.ranges) {
		args = append(args, fmt.Sprint(r.inside), fmt.Sprint(r.outside), fmt.Sprint(r.count))
	}
	out, err := exec.Command(g.program, args...).CombinedOutput() //nolint:noctx // it ends by itself, and at once
	if err != nil {
		return fmt.Errorf("%s: %w: %s", g.program, err, bytes.TrimSpace(out))
	}
	return nil
}

func procPath(pid int, file string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + file
}

// ownNamespace opens the user namespace of this process.
func ownNamespace() (*os.File, error) {
	return os.OpenFile("/proc/self/ns/user", os.O_RDONLY|unix.O_CLOEXEC, 0)
}
