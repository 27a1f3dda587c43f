package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/atoll-run/atoll/internal/node/osthread"
)

// Start starts a command in the group, so that it is accounted and limited from
// its first page on. A process that is moved, or moves itself, waits for each of
// the machine's processors to have come by (a grace period of RCU, 7 to 10 ms);
// one that is made in the group does not.
func (g *Group) Start(cmd *exec.Cmd) error {
	if g.parent.version == V2 {
		return g.startInto(cmd)
	}
	return osthread.Do(func() error {
		tasks, _ := g.Entrance()
		for _, file := range tasks {
			if err := os.WriteFile(file, []byte("0"), 0); err != nil {
				return fmt.Errorf("join cgroup: %w", err)
			}
		}
		return cmd.Start()
	})
}

// Entrance returns where processes are started in the group from outside: with version
// 1 the files that a thread writes "0" to, which then starts them and ends, and with
// version 2 the folder, for CLONE_INTO_CGROUP.
func (g *Group) Entrance() (tasks []string, folder string) {
	if g.parent.version == V2 {
		return nil, filepath.Join(g.parent.dirs[""], g.name)
	}
	for _, dir := range g.parent.dirs {
		tasks = append(tasks, filepath.Join(dir, g.name, "tasks"))
	}
	return tasks, ""
}

// startInto has the kernel make the process in the group (CLONE_INTO_CGROUP).
func (g *Group) startInto(cmd *exec.Cmd) error {
	_, folder := g.Entrance()
	dir, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("join cgroup: %w", err)
	}
	defer dir.Close()
	var attributes syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attributes = *cmd.SysProcAttr
	}
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(dir.Fd())
	cmd.SysProcAttr = &attributes
	return cmd.Start()
}
