package main

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// sidecarEnv names the folder of gVisor's other programs to gVisor.
const sidecarEnv = "GVISOR_SIDECAR_BINARIES_DIR"

// sidecarFD is beyond the descriptors that a child gets its files in.
const sidecarFD = 500

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
	fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, sidecarFD)
	if err != nil {
		return
	}
	os.Setenv(sidecarEnv, "/proc/self/fd/"+strconv.Itoa(fd))
}
