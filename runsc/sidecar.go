package main

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// sidecarEnv names the folder of gVisor's other programs to gVisor.
const sidecarEnv = "GVISOR_SIDECAR_BINARIES_DIR"

// mountsEnv says how many folders of the host the sandbox mounts.
const mountsEnv = "ATOLL_RUNSC_MOUNTS"

// Descriptors that a child gets no file in: lastFD where it has some 20 files and
// two for each of fewMounts, and farFD. A process with threads has a table of 64
// descriptors made larger only once each of the machine's processors has come by
// (a grace period of RCU, 7 to 10 ms).
const (
	lastFD    = 63
	fewMounts = 16
	farFD     = 500
)

// openSidecars lets the sandbox's kernel be started from a folder that the user
// it runs as cannot reach, such as one in another user's closed home: the folder is
// opened by who can, and named by its descriptor. Where that fails, gVisor
// takes the path.
func openSidecars() {
	if os.Getenv(sidecarEnv) != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	dir, err := unix.Open(filepath.Join(filepath.Dir(self), "gvisor-bin"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, sidecarFD())
	if err != nil {
		return
	}
	os.Setenv(sidecarEnv, "/proc/self/fd/"+strconv.Itoa(fd))
}

func sidecarFD() int {
	mounts, _ := strconv.Atoi(os.Getenv(mountsEnv))
	os.Unsetenv(mountsEnv)
	if mounts > fewMounts {
		return farFD
	}
	return lastFD
}
