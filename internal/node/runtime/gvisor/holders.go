package gvisor

import "fmt"

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
