package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// serverGroup is the leaf that the server moves itself to. All processes of a
// base share it, so that a process that finds itself in it knows the base.
const serverGroup = "atoll-server"

// v2Controllers are those that hold our limits.
var v2Controllers = []string{"memory", "cpu", "pids"}

func openV2(name string) (*Parent, error) {
	own, err := ownGroup()
	if err != nil {
		return nil, err
	}
	return openV2At(mountpoint, own, name, v2Controllers)
}

// openV2At makes the group below the one that this process is in, if that was
// delegated to us (systemd's Delegate=yes, a container of our own), and below
// the root otherwise. A group with processes of its own cannot hand controllers
// down, so the server moves itself to a leaf beside the sandboxes; a session's
// group, which holds its shell too, will not do.
func openV2At(mount, own, name string, controllers []string) (*Parent, error) {
	base := filepath.Join(mount, own)
	if filepath.Base(own) == serverGroup {
		base = filepath.Dir(base) // moved before
	}
	err := prepare(base, controllers)
	if err != nil && base != mount && os.Geteuid() == 0 {
		if atRoot := prepare(mount, controllers); atRoot != nil {
			err = errors.Join(err, atRoot)
		} else {
			base, err = mount, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup v2 is not delegated: %w", err)
	}
	dir := filepath.Join(base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cgroup v2 is not delegated: %w", err)
	}
	if err := enable(dir, controllers); err != nil {
		return nil, errors.Join(err, unix.Rmdir(dir))
	}
	return &Parent{version: V2, name: name, dirs: map[string]string{"": dir}}, nil
}

// prepare makes a group hand its controllers down. It moves no process unless that
// leaves the group without processes of its own.
func prepare(base string, controllers []string) error {
	if enabled(base, controllers) {
		return nil
	}
	err := enable(base, controllers)
	if !errors.Is(err, unix.EBUSY) {
		return err // done, or processes are not what is in the way
	}
	pids, others, err := ours(base)
	if err != nil {
		return err
	}
	if others > 0 {
		return fmt.Errorf("%s holds %d processes besides ours", base, others)
	}
	leaf := filepath.Join(base, serverGroup)
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	for _, pid := range pids {
		err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("move into %s: %w", leaf, err)
		}
	}
	return enable(base, controllers)
}

// ours lists the processes of a group that run this program, such as the one
// that started this one in a namespace, and counts the others.
func ours(base string) (pids []int, others int, err error) {
	data, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
	if err != nil {
		return nil, 0, err
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return nil, 0, err
	}
	for f := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			return nil, 0, err
		}
		exe, err := os.Stat("/proc/" + f + "/exe")
		if pid == os.Getpid() || err == nil && os.SameFile(self, exe) || pid == os.Getppid() && sameCommand(pid) {
			pids = append(pids, pid)
		} else {
			others++
		}
	}
	return pids, others, nil
}

// sameCommand reports whether a process has the name of this one. More cannot be
// seen of the one that started this one in a user namespace, from in there.
func sameCommand(pid int) bool {
	other, err1 := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	own, err2 := os.ReadFile("/proc/self/comm")
	return err1 == nil && err2 == nil && bytes.Equal(own, other)
}

// enabled reports whether a group hands all controllers down already.
func enabled(dir string, controllers []string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return false
	}
	have := strings.Fields(string(data))
	return !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(have, c) })
}

func enable(dir string, controllers []string) error {
	line := "+" + strings.Join(controllers, " +")
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(line), 0); err != nil {
		return fmt.Errorf("enable the controllers %s below %s: %w", strings.Join(controllers, ", "), dir, err)
	}
	return nil
}

func ownGroup() (string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("this process is in no cgroup v2 group")
}
