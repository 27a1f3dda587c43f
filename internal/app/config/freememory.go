package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FreeMemory returns the bytes of memory that this machine can still use, or as much of it as the
// process's control groups allow; 0 if unknown.
func FreeMemory() int64 {
	free := meminfo("MemAvailable")
	for _, path := range memoryLimits() {
		limit, ok := readNumber(path)
		if !ok || limit <= 0 {
			continue
		}
		use := "memory.current"
		if filepath.Base(path) == "memory.limit_in_bytes" {
			use = "memory.usage_in_bytes"
		}
		if used, ok := readNumber(filepath.Join(filepath.Dir(path), use)); ok {
			if left := max(limit-used+reclaimable(filepath.Dir(path)), 1); free == 0 || left < free { // 0 is unknown
				free = left
			}
		}
	}
	return free
}

// readNumber reads a file that contains a number.
func readNumber(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// meminfo reads a field of /proc/meminfo in bytes, 0 if that cannot be read.
func meminfo(field string) int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, field+": %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// reclaimable reads the bytes of cached files in a control group that its memory limit does not keep
// from programs.
func reclaimable(dir string) int64 {
	data, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	var own, total int64 // cgroup v1 has both, and total includes children
	for line := range strings.Lines(string(data)) {
		_, _ = fmt.Sscanf(line, "inactive_file %d", &own)
		_, _ = fmt.Sscanf(line, "total_inactive_file %d", &total)
	}
	return max(own, total)
}
