package main

import (
	"fmt"
	"os"
	"strings"
)

// joinEnv names the cgroup.procs files, separated by colons, that this process
// joins before anything else, so that the sandbox is accounted and limited from
// its first page on. runsc can make groups itself, but in every hierarchy of a
// version 1 machine, and one group after the other.
const joinEnv = "ATOLL_RUNSC_CGROUP_PROCS"

func joinCgroups() error {
	files := os.Getenv(joinEnv)
	if files == "" {
		return nil
	}
	os.Unsetenv(joinEnv)
	for _, file := range strings.Split(files, ":") {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}
