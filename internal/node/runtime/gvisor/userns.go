package gvisor

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// nobodyID is the user of a sandbox's kernel, in a user namespace of its own.
const nobodyID = 65534

// users says how the user that runsc runs as relates to the user nobody.
type users struct {
	// alone: our user namespace has no user nobody, because it has a single user. runsc then runs as an ordinary user, one namespace further down, and
	// gives the sandbox's kernel a namespace in which the user nobody stands for that
	// user.
	alone bool
	// groups: supplementary groups can be given up, so that none of the
	// caller's (docker, sudo) is left to a sandbox's kernel.
	groups bool
}

// runscUser is runsc's user id in the namespace made for it. Any but 0 will do:
// as root it would need the user nobody.
const runscUser = 1000

// findUsers looks at the user namespace of this process.
func findUsers() users {
	setgroups, _ := os.ReadFile("/proc/self/setgroups") // missing before Linux 3.19
	allowed := strings.TrimSpace(string(setgroups)) != "deny"
	alone := !mapped("/proc/self/uid_map", nobodyID) || !mapped("/proc/self/gid_map", nobodyID) || os.Geteuid() != 0
	return users{alone: alone, groups: allowed && !alone}
}

// mapped reports whether a map file of /proc has an id.
func mapped(file string, id uint64) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return true // no user namespaces in this kernel
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, _ := strconv.ParseUint(fields[0], 10, 64)
		count, _ := strconv.ParseUint(fields[2], 10, 64)
		if id >= first && id-first < count {
			return true
		}
	}
	return false
}

// attributes returns how a runsc process is started.
func (u users) attributes() *syscall.SysProcAttr {
	if u.alone {
		return &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: runscUser, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: runscUser, HostID: os.Getegid(), Size: 1}},
		}
	}
	if !u.groups {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{
		Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid()),
	}}
}
