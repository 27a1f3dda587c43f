package config

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/language"
)

// PoolSize is how many warm sandboxes are kept ready of each kind.
type PoolSize int

// PoolAuto has the size follow from the machine: see Config.Pool.
const PoolAuto PoolSize = -1

const maxPoolSize = 1000

// UnmarshalText reads "auto" or a whole number.
func (p *PoolSize) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*p = PoolAuto
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("%q is neither a whole number nor auto", text)
	}
	if n < 0 || n > maxPoolSize {
		return fmt.Errorf("must be auto, or between 0 and %d", maxPoolSize)
	}
	*p = PoolSize(n)
	return nil
}

// String returns the size as it is written.
func (p PoolSize) String() string {
	if p == PoolAuto {
		return "auto"
	}
	return strconv.Itoa(int(p))
}

// Machine is what the size of the pool follows from.
type Machine struct {
	Cores  int
	Memory int64 // bytes that this process and its sandboxes may use; 0 if not known
}

// Pool is how many warm sandboxes are kept ready.
type Pool struct {
	Default int   // of the default language of requests, without preloads
	Others  int   // of each other kind
	Memory  int64 // bytes of all of them under demand; 0 for no bound
}

// Bounds of a pool whose size is PoolAuto.
const (
	poolPerCore = 50 // made anew in about 5 s; on two cores 100 calls in a row find one each
	poolPerGiB  = 5  // about 70 MiB of each GiB, with the memory of one at 14 MiB
	maxPool     = 128

	othersPerCore = 3 // of each other kind, which take more of either
	gibPerOther   = 2
	maxOthers     = 16

	minPool    = 2
	poolMemory = 8 // all together get this part of the memory, under demand
)

// Pool returns the size of the pool on a machine. Python, the default language of a
// request, gets most of it.
func (c *Config) Pool(m Machine) Pool {
	p := Pool{Default: int(c.PoolSize), Others: int(c.PoolSize), Memory: int64(c.PoolMemory)}
	if c.PoolSize == PoolAuto {
		p.Default, p.Others = poolPerCore*m.Cores, othersPerCore*m.Cores
		if m.Memory > 0 {
			gib := int(math.Ceil(float64(m.Memory) / (1 << 30)))
			p.Default, p.Others = min(p.Default, gib*poolPerGiB), min(p.Others, gib/gibPerOther)
		}
		p.Default = max(minPool, min(p.Default, maxPool))
		p.Others = max(minPool, min(p.Others, maxOthers))
	}
	if p.Memory == 0 {
		p.Memory = m.Memory / poolMemory
	}
	return p
}

// Note says what a value of a setting comes to on this machine, "" where that is the
// value itself.
func (c *Config) Note(setting string) string {
	p := c.Pool(ThisMachine())
	switch {
	case setting == "pool_size" && c.PoolSize == PoolAuto:
		return fmt.Sprintf("%d for %s, %d for each other kind: 50 for each core, at most 5 for each GiB of memory, between 2 and 128; for the others 3 for each core, at most 1 for each 2 GiB, between 2 and 16", p.Default, language.Get(language.Default).Title, p.Others)
	case setting == "pool_memory" && c.PoolMemory == 0:
		return fmt.Sprintf("%d MiB: an eighth of the machine's memory", p.Memory>>20)
	}
	return ""
}

// ThisMachine is the machine that this process runs on, or as much of it as the
// process's control group allows.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Memory: meminfo("MemTotal")}
	for _, path := range memoryLimits() {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && limit > 0 && (m.Memory == 0 || limit < m.Memory) {
			m.Memory = limit
		}
	}
	return m
}

// memoryLimits are the files that may limit this process's memory, on version 1 and
// version 2 of control groups.
func memoryLimits() []string {
	const root = "/sys/fs/cgroup"
	files := []string{filepath.Join(root, "memory.max"), filepath.Join(root, "memory/memory.limit_in_bytes")}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		dir, file := root, "memory.max"
		switch {
		case controllers == "memory":
			dir, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		for ; strings.HasPrefix(group, "/") && group != "/"; group = filepath.Dir(group) {
			files = append(files, filepath.Join(dir, group, file))
		}
	}
	return files
}
