package gvisor

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/runtime/state"
)

// Holders implements sandbox.Instance: a sandbox's file server has all files of
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

// findServer returns the process id of the file server, 0 if there is none. The
// processes in which programs run have no arguments.
func (i *Instance) findServer() (int, error) {
	if !i.served {
		return 0, nil
	}
	flag := rootFlag + i.runtime.dir.Path(i.id, runscDir)
	if i.runtime.cfg.Cgroups == nil {
		if i.meter.server == 0 {
			return 0, fmt.Errorf("the file server of %s was not found", i.id)
		}
		return i.meter.server, nil
	}
	pids, err := i.runtime.cfg.Cgroups.Group(string(i.id)).Processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if pid != i.pid && state.HasArgument(pid, flag) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("the file server of %s was not found", i.id)
}
