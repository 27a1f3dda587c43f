package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// tellLimits adds to the boot command what the sandbox's control group allows,
// so that programs see the memory and processors they may use: Node sizes its
// heap by it. Limits that cannot be read leave the machine's figures in place.
func tellLimits(args []string) []string {
	memory, cpus := readLimits()
	out := make([]string, 0, len(args)+2)
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case (a == "--total-memory" || a == "--total-host-memory") && memory > 0 && i+1 < len(args):
			i++
			out = append(out, a, strconv.FormatInt(memory, 10))
		case a == "boot":
			out = append(out, a)
			// Below two processors some programs leave out locks that others
			// of theirs rely on; gVisor itself keeps to this minimum.
			if n := max(2, int(math.Ceil(cpus))); cpus > 0 && n < runtime.NumCPU() {
				out = append(out, "--cpu-num", strconv.Itoa(n))
			}
		default:
			out = append(out, a)
		}
	}
	return out
}

// totalMemory returns the memory that the boot command was told, 0 if none. The
// command starts itself anew once it can no longer see its control group, and
// then writes its flags with an equals sign.
func totalMemory(args []string) int64 {
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--total-memory=")
		if a == "--total-memory" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if n, err := strconv.ParseInt(value, 10, 64); ok && err == nil {
			return n
		}
	}
	return 0
}

// readLimits returns the memory (bytes) and processors of this process's
// control groups, zero where there is no limit.
func readLimits() (memory int64, cpus float64) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		const root = "/sys/fs/cgroup"
		switch {
		case parts[0] == "0" && parts[1] == "":
			dir := filepath.Join(root, parts[2])
			if n := readNumbers(filepath.Join(dir, "memory.max")); len(n) == 1 {
				memory = n[0]
			}
			if n := readNumbers(filepath.Join(dir, "cpu.max")); len(n) == 2 {
				cpus = float64(n[0]) / float64(n[1])
			}
		case parts[1] == "memory":
			if n := readNumbers(filepath.Join(root, "memory", parts[2], "memory.limit_in_bytes")); len(n) == 1 && n[0] < math.MaxInt64/2 {
				memory = n[0]
			}
		case strings.Contains(","+parts[1]+",", ",cpu,"):
			dir := filepath.Join(root, "cpu", parts[2])
			quota, period := readNumbers(filepath.Join(dir, "cpu.cfs_quota_us")), readNumbers(filepath.Join(dir, "cpu.cfs_period_us"))
			if len(quota) == 1 && len(period) == 1 && quota[0] > 0 && period[0] > 0 {
				cpus = float64(quota[0]) / float64(period[0])
			}
		}
	}
	return memory, cpus
}

// readNumbers returns the numbers in a file, or none when a field is not one
// ("max").
func readNumbers(path string) []int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var out []int64
	for f := range strings.FieldsSeq(string(data)) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}
