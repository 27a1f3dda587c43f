// Package rootless lets an ordinary user make sandboxes: the program starts
// itself anew in a user namespace in which the caller is root.
//
// The process that was called stays outside, passes signals in and the exit code
// out, and neither of the two outlives the other. Every process of a data folder
// enters the same namespace, so that a later one may signal and inspect the
// sandboxes of an earlier one. No process is kept for that: the namespace is
// found again through any process that lives in it, a sandbox included, and
// when none does there is nothing left in it to be found.
//
// The network and the other namespaces stay the caller's own, but for the mount
// namespace: what is mounted inside is not seen outside.
package rootless

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Values of the setting that Needed takes.
const (
	Auto   = "auto"
	Always = "always"
	Never  = "never"
)

// insideEnv marks the process inside.
const insideEnv = "ATOLL_ROOTLESS_INSIDE"

// inside is read once: no program that we start shall find the mark.
var inside = readMark()

func readMark() bool {
	_, marked := os.LookupEnv(insideEnv)
	if marked {
		_ = os.Unsetenv(insideEnv) // fails for names that are none
	}
	return marked && os.Geteuid() == 0
}

// Alone reports whether this process's user is the only one in its user
// namespace: files cannot be given to others there.
func Alone() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(data))
	return err == nil && len(fields) == 3 && fields[2] == "1"
}

// ErrNever says that an ordinary user may not do without the namespace.
var ErrNever = errors.New("sandboxes are made by root, or with rootless set to auto or always by any user: rootless is never, and this is not root")

// Needed reports whether a process that wants to make sandboxes has to Enter
// first.
func Needed(setting string) (bool, error) {
	switch {
	case inside:
		return false, nil
	case setting == Always:
		return true, nil
	case os.Geteuid() == 0:
		return false, nil
	case setting == Never:
		return false, ErrNever
	}
	return true, nil
}

// Forbidden names what keeps ordinary users from making user namespaces, with
// the command that allows it; "" when no known setting does.
func Forbidden() string {
	for _, s := range []struct{ file, bad, fix string }{
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		if value, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(value)) == s.bad {
			return s.fix
		}
	}
	return ""
}

// explain adds to an error of making a namespace what would allow it.
func explain(err error) error {
	if fix := Forbidden(); fix != "" {
		return fmt.Errorf("%w: user namespaces are forbidden: run %s, or run as root", err, fix)
	}
	return fmt.Errorf("%w: in a container, its seccomp profile must allow unshare and mount; or run as root", err)
}
