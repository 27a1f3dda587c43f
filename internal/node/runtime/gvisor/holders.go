package gvisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

var _ runtime.FileServed = (*Instance)(nil)

// FileDescriptors implements runtime.FileServed. The size of the process's table, which
// never shrinks, shows cheaply that it is far from the limit.
func (i *Instance) FileDescriptors() (open, limit int, err error) {
	servers, err := i.Holders()
	if err != nil || len(servers) == 0 {
		return 0, 0, err
	}
	limit, err = procNumber(servers[0], "limits", "Max open files")
	if err != nil {
		return 0, 0, err
	}
	open, err = procNumber(servers[0], "status", "FDSize:")
	if err != nil || open < limit/2 {
		return open / 2, limit, err
	}
	entries, err := os.ReadDir(procPath(servers[0], "fd"))
	return len(entries), limit, err
}

// procNumber is the first number behind a label in a file of a process.
func procNumber(pid int, file, label string) (int, error) {
	path := procPath(pid, file)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), label)
	if f := strings.Fields(rest); len(f) > 0 {
		return strconv.Atoi(f[0])
	}
	return 0, fmt.Errorf("%s is without %q", path, label)
}

// Holders implements runtime.Instance: a sandbox's file server has all files of
// mounts open, whatever its kernel says. It is looked for once: it ends with the
// sandbox.
func (i *Instance) Holders() ([]int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server == 0 {
		server, err := i.findServer()
		if server == 0 || err != nil {
			return nil, err
		}
		i.server = server
	}
	return []int{i.server}, nil
}

// findServer returns the process id of the file server, 0 if there is none.
func (i *Instance) findServer() (int, error) {
	switch {
	case !i.served:
		return 0, nil
	case i.runtime.cfg.Cgroups != nil:
		return i.runtime.findServer(i.born, i.pid)
	case i.meter.server == 0:
		return 0, fmt.Errorf("the file server of %s was not found", i.id)
	}
	return i.meter.server, nil
}
