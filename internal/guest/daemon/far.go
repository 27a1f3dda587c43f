package daemon

import (
	"os"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// near are the folders that are mounted in every sandbox, with those below them: they
// are memory, or on the machine's disk.
var near = []string{wire.Home, "/tmp", "/var/tmp", wire.Shared, wire.Meeting, "/.atoll", "/dev", "/proc", "/sys"}

// farFolders reports whether other folders are mounted, such as a bucket, which may
// take its time for each of its files, or not answer at all.
func farFolders() bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	return err != nil || areFar(string(text))
}

func areFar(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return true
		}
		at := fields[4]
		if at != "/" && !slices.ContainsFunc(near, func(dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }) {
			return true
		}
	}
	return false
}
