package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryOf returns the memory of processes in bytes, and how many address spaces they
// have. Processes of a sandbox share some, and the kernel says for each of them what
// its whole address space has.
func memoryOf(pids []int) (pss int64, spaces int, err error) {
	pids, err = distinct(pids, sameMemory)
	if err != nil {
		return 0, 0, err
	}
	for _, pid := range pids {
		n, err := readPSS(pid)
		if err != nil {
			return 0, 0, err
		}
		pss += n
	}
	return pss, len(pids), nil
}

// distinct returns one process of each address space.
func distinct(pids []int, same func(a, b int) (bool, error)) (kept []int, err error) {
next:
	for _, pid := range pids {
		for _, k := range kept {
			is, err := same(pid, k)
			if err != nil {
				return nil, err
			}
			if is {
				continue next
			}
		}
		kept = append(kept, pid)
	}
	return kept, nil
}

// sameMemory reports whether two processes have one address space. One that has ended
// has none.
func sameMemory(a, b int) (bool, error) {
	const memory = 1 // KCMP_VM
	order, _, err := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), memory, 0, 0, 0)
	switch {
	case err == unix.ESRCH:
		return false, nil
	case err != 0:
		return false, fmt.Errorf("compare the memory of processes %d and %d: %w", a, b, err)
	}
	return order == 0, nil
}

func readPSS(pid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, nil // it has ended since it was listed, and uses nothing
	}
	if err != nil {
		return 0, err
	}
	pss, err := parsePSS(string(data))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return pss, nil
}

func parsePSS(rollup string) (int64, error) {
	for line := range strings.Lines(rollup) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no Pss in %.60q", rollup)
}
