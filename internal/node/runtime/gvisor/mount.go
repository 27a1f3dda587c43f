package gvisor

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

// served reports whether a sandbox has a file server beside its kernel.
func served(spec runtime.Spec) bool {
	return spec.Rootfs.Tree != "" || len(spec.Mounts) > 0
}

// owns reports whether a sandbox has folders for itself. What has been looked up
// in them is not asked for again; in the others it is, which are named one by one.
func owns(spec runtime.Spec) bool {
	return slices.ContainsFunc(spec.Mounts, func(m runtime.Mount) bool { return m.Own })
}

// checkMounts reports mounts that cannot work.
func (r *Runtime) checkMounts(spec runtime.Spec) error {
	for _, m := range spec.Mounts {
		if err := m.Validate(); err != nil {
			return err
		}
	}
	if len(spec.Mounts) == 0 {
		return nil
	}
	if spec.Rootfs.Tree != "" && (os.Geteuid() != 0 || r.owners.UID.Host != idmap.Base) {
		return fmt.Errorf("%w for an ordinary user: mounts beside a folder as root file system; use an image", runtime.ErrUnsupported)
	}
	return r.unowned
}

// addMounts adds a sandbox's mounts to its configuration. In them, a sandbox's
// users are those of package idmap: its file server has a user namespace where
// they are, so that what belongs to other users is closed to it. One that also serves
// a root folder cannot, as that belongs to the host's users; then each mount is
// shown with other owners than it has.
func (r *Runtime) addMounts(s *specs.Spec, spec runtime.Spec) {
	tree, exclusive := spec.Rootfs.Tree != "", owns(spec)
	for i, m := range spec.Mounts {
		mount := specs.Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: []string{"rbind", "ro", "nosuid", "nodev"}}
		if m.Writable {
			mount.Options[1] = "rw"
		}
		if tree {
			mount.UIDMappings, mount.GIDMappings = shown(r.owners.UID), shown(r.owners.GID)
		}
		s.Mounts = append(s.Mounts, mount)
		if exclusive && !m.Own { // which gVisor knows by its source
			hint := "dev.gvisor.spec.mount.shared" + strconv.Itoa(i)
			s.Annotations[hint+".source"], s.Annotations[hint+".type"], s.Annotations[hint+".share"] = m.Source, "bind", "shared"
		}
	}
	switch {
	case !tree && len(spec.Mounts) > 0:
		addNamespace(s, inNamespace(r.owners.UID), inNamespace(r.owners.GID))
	case tree && r.users.alone: // runsc asks for one where it is not root
		only := []specs.LinuxIDMapping{{ContainerID: 0, HostID: runscUser, Size: 1}}
		addNamespace(s, only, only)
	}
}

func addNamespace(s *specs.Spec, uids, gids []specs.LinuxIDMapping) {
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	s.Linux.UIDMappings, s.Linux.GIDMappings = uids, gids
}

func inNamespace(r idmap.Range) []specs.LinuxIDMapping {
	return []specs.LinuxIDMapping{{ContainerID: 0, HostID: r.Host, Size: r.Count}}
}

// shown is the map of a mount: first the owners of files, then the owners that are
// shown.
func shown(r idmap.Range) []specs.LinuxIDMapping {
	return []specs.LinuxIDMapping{{ContainerID: r.Host, HostID: 0, Size: r.Count}}
}

// server returns the process id of a sandbox's file server, 0 for none: it is
// accounted with the sandbox where no control group does so.
func (r *Runtime) server(rec state.Record) int {
	if r.cfg.Cgroups != nil || !served(rec.Spec) {
		return 0
	}
	server, _ := r.findServer(rec.Origin(), rec.Pid)
	return server
}

// findServer returns the process id of the file server of a sandbox by the id that
// it was started with, and its kernel. The processes in which programs run have no
// arguments.
func (r *Runtime) findServer(born runtime.ID, kernel int) (int, error) {
	flag := rootFlag + r.dir.Path(born, runscDir)
	var pids []int
	if r.cfg.Cgroups == nil {
		pids = state.WithArgument(flag)
	} else {
		all, err := r.cfg.Cgroups.Group(string(born)).Processes()
		if err != nil {
			return 0, err
		}
		pids = slices.DeleteFunc(all, func(pid int) bool { return !state.HasArgument(pid, flag) })
	}
	for _, pid := range pids {
		if pid != kernel && pid != os.Getpid() {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("the file server of %s was not found", born)
}
