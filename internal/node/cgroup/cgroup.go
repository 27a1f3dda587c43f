// Package cgroup makes one control group per sandbox, on version 1 and
// version 2 hierarchies alike, and reads what it accounted.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Version is the generation of the hierarchy that holds the controllers.
type Version int

const (
	None Version = iota // no writable hierarchy
	V1
	V2
)

const mountpoint = "/sys/fs/cgroup"

// Limits of one group. Zero leaves a dimension unlimited.
type Limits struct {
	Memory int64   // bytes
	CPU    float64 // cores
	Tasks  int64   // processes and threads on the host
}

// Usage is what a group accounted so far.
type Usage struct {
	CPUSeconds float64
	Memory     int64 // bytes of anonymous and shared memory: what reclaim cannot take back
	PeakMemory int64 // bytes, page cache included
	OOMKills   int
}

// Parent is the folder in each hierarchy below which groups are made.
type Parent struct {
	version Version
	name    string            // group name of the parent, such as "/atoll"
	dirs    map[string]string // controller (v1) or "" (v2) to folder
	memory  memoryEvents      // of version 2
}

// v1Controllers are those that hold a limit or tell a figure we use.
var v1Controllers = []string{"memory", "cpu", "cpuacct", "pids"}

// Open prepares the parent group of a name (one path element) below the group
// that this process may write to. An error says what is missing.
func Open(name string) (*Parent, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(mountpoint, &st); err != nil {
		return nil, fmt.Errorf("no cgroup file system at %s: %w", mountpoint, err)
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		return openV2(name)
	}
	return openV1(name)
}

func openV1(name string) (*Parent, error) {
	p := &Parent{version: V1, name: name, dirs: map[string]string{}}
	for _, c := range v1Controllers {
		dir := filepath.Join(mountpoint, c, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			// Those made so far are empty, unless another process uses them.
			for _, made := range p.dirs {
				_ = unix.Rmdir(made)
			}
			return nil, fmt.Errorf("cgroup v1 controller %s: %w", c, err)
		}
		p.dirs[c] = dir
	}
	return p, nil
}

// Version reports the generation in use.
func (p *Parent) Version() Version { return p.version }

// Remove deletes the parent group, which must be empty of groups.
func (p *Parent) Remove() error {
	g := &Group{parent: &Parent{version: p.version, dirs: map[string]string{}}, name: p.name}
	for c, dir := range p.dirs {
		g.parent.dirs[c] = filepath.Dir(dir)
	}
	return g.Remove()
}

// Group is one sandbox's control group.
type Group struct {
	parent *Parent
	name   string
}

// Create makes a group and sets its limits.
func (p *Parent) Create(name string, l Limits) (*Group, error) {
	g := p.Group(name)
	for _, dir := range p.dirs {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("create cgroup: %w", err), g.Remove())
		}
	}
	if err := g.Limit(l); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// Group returns the group of a name, which need not exist.
func (p *Parent) Group(name string) *Group { return &Group{parent: p, name: name} }

// List returns the names of the groups that exist.
func (p *Parent) List() ([]string, error) {
	seen := map[string]bool{}
	var names []string
	for _, dir := range p.Group("").folders() {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) && dir == p.Group("").freezer() {
			continue // none was frozen yet
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && !seen[e.Name()] {
				seen[e.Name()] = true
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

// cpuPeriod is the length of a scheduling period, in microseconds.
const cpuPeriod = 100_000

// minQuota is the smallest share of a period that the kernel takes.
const minQuota = 1000

// setting is a limit's file and what is in it.
type setting struct {
	controller, file, value string
	optional                bool
}

func (p *Parent) settings(l Limits) []setting {
	quota := strconv.FormatInt(max(int64(l.CPU*cpuPeriod), minQuota), 10)
	var settings []setting
	if p.version == V1 {
		if l.Memory > 0 {
			settings = append(settings,
				setting{"memory", "memory.limit_in_bytes", strconv.FormatInt(l.Memory, 10), false},
				// Absent where swap accounting is off; then swap is not limited
				// by anyone, and the limit above holds resident memory only.
				setting{"memory", "memory.memsw.limit_in_bytes", strconv.FormatInt(l.Memory, 10), true})
		}
		if l.CPU > 0 {
			settings = append(settings, setting{"cpu", "cpu.cfs_quota_us", quota, false})
		}
		if l.Tasks > 0 {
			settings = append(settings, setting{"pids", "pids.max", strconv.FormatInt(l.Tasks, 10), false})
		}
		return settings
	}
	if l.Memory > 0 {
		settings = append(settings,
			setting{"", "memory.max", strconv.FormatInt(l.Memory, 10), false},
			setting{"", "memory.swap.max", "0", true})
	}
	if l.CPU > 0 {
		settings = append(settings, setting{"", "cpu.max", quota + " " + strconv.Itoa(cpuPeriod), false})
	}
	if l.Tasks > 0 {
		settings = append(settings, setting{"", "pids.max", strconv.FormatInt(l.Tasks, 10), false})
	}
	return settings
}

// Limit sets the limits that are not zero.
func (g *Group) Limit(l Limits) error { return g.set(g.parent.settings(l)) }

func (g *Group) set(settings []setting) error {
	for _, s := range settings {
		path := filepath.Join(g.parent.dirs[s.controller], g.name, s.file)
		err := os.WriteFile(path, []byte(s.value), 0)
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("set %s to %s: %w", path, s.value, err)
		}
	}
	return nil
}

// Check reports a limit that is not in force, or that the group does not hold a
// process. The kernel keeps memory in whole pages.
func (g *Group) Check(l Limits, pid int) error {
	const page = 4096
	for _, s := range g.parent.settings(l) {
		path := filepath.Join(g.parent.dirs[s.controller], g.name, s.file)
		data, err := os.ReadFile(path)
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		got := strings.TrimSpace(string(data))
		want, err1 := strconv.ParseInt(s.value, 10, 64)
		have, err2 := strconv.ParseInt(got, 10, 64)
		if got != s.value && (err1 != nil || err2 != nil || have/page != want/page) {
			return fmt.Errorf("%s is %q instead of %q", path, got, s.value)
		}
	}
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(groups)) {
		if strings.HasSuffix(strings.TrimSpace(line), "/"+g.name) {
			return nil
		}
	}
	return fmt.Errorf("process %d is not in the group %s", pid, g.name)
}

// PeakMemory reads one figure of Usage, 0 when it is not known.
func (g *Group) PeakMemory() int64 {
	path := filepath.Join(g.parent.dirs[""], g.name, "memory.peak")
	if g.parent.version == V1 {
		path = filepath.Join(g.parent.dirs["memory"], g.name, "memory.max_usage_in_bytes")
	}
	n, _ := readInt(path)
	return n
}

// Procs returns the files that a process writes "0" to in order to join.
func (g *Group) Procs() []string {
	var files []string
	for _, dir := range g.parent.dirs {
		files = append(files, filepath.Join(dir, g.name, "cgroup.procs"))
	}
	return files
}

// killRounds bounds how often Kill looks for what a process started just before
// it was killed.
const killRounds = 20

// Kill sends SIGKILL to every process in the group, frozen ones too: version 1
// would let those have it when they go on.
func (g *Group) Kill() {
	_ = g.Thaw() // what does not exist needs none, and removing tells what remains
	if dir, ok := g.parent.dirs[""]; ok {
		// Since Linux 5.14 one write ends all, whatever they are forking.
		if os.WriteFile(filepath.Join(dir, g.name, "cgroup.kill"), []byte("1"), 0) == nil {
			return
		}
	}
	for range killRounds {
		if !g.signal() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// signal kills the processes that are listed, and reports whether any was. This
// process is listed while a thread of it starts one.
func (g *Group) signal() (any bool) {
	for _, file := range g.Procs() {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 && pid != os.Getpid() {
				any = unix.Kill(pid, unix.SIGKILL) == nil || any
			}
		}
	}
	return any
}

// folders are the group's, in every hierarchy.
func (g *Group) folders() []string {
	var folders []string
	for _, dir := range g.parent.dirs {
		folders = append(folders, filepath.Join(dir, g.name))
	}
	if g.parent.version == V1 {
		folders = append(folders, g.freezer())
	}
	return folders
}

// removal bounds waiting for the last processes of a group, which a busy machine
// may let die late.
const removal = 10 * time.Second

// Remove deletes the group, waiting a moment for its last processes to be
// gone. A group that does not exist is no error.
func (g *Group) Remove() error {
	var errs []error
	end := time.Now().Add(removal)
	for _, path := range g.folders() {
		err := unix.Rmdir(path)
		for wait := time.Millisecond; errors.Is(err, unix.EBUSY) && time.Now().Before(end); wait = min(2*wait, 100*time.Millisecond) {
			time.Sleep(wait)
			err = unix.Rmdir(path)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w%s", path, err, holders(path)))
		}
	}
	return errors.Join(errs...)
}

// holders says what keeps a group from being removed, as far as that shows.
func holders(path string) string {
	pids, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	groups, _ := filepath.Glob(filepath.Join(path, "*", "cgroup.procs"))
	return fmt.Sprintf(" (processes %v, groups %v)", strings.Fields(string(pids)), groups)
}

// Usage reads the group's accounting. Figures that the kernel does not offer
// (memory.peak before Linux 5.19) stay zero.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	if g.parent.version == V1 {
		ns, err := readInt(filepath.Join(g.parent.dirs["cpuacct"], g.name, "cpuacct.usage"))
		if err != nil {
			return u, err
		}
		u.CPUSeconds = float64(ns) / 1e9
		memory := filepath.Join(g.parent.dirs["memory"], g.name)
		u.Memory = readKeys(filepath.Join(memory, "memory.stat"), "total_rss", "total_shmem")
		u.PeakMemory, _ = readInt(filepath.Join(memory, "memory.max_usage_in_bytes"))
		u.OOMKills = int(readKeys(filepath.Join(memory, "memory.oom_control"), "oom_kill"))
		return u, nil
	}
	dir := filepath.Join(g.parent.dirs[""], g.name)
	if _, err := os.Stat(dir); err != nil {
		return u, err
	}
	u.CPUSeconds = float64(readKeys(filepath.Join(dir, "cpu.stat"), "usage_usec")) / 1e6
	u.Memory = readKeys(filepath.Join(dir, "memory.stat"), "anon", "shmem")
	u.PeakMemory, _ = readInt(filepath.Join(dir, "memory.peak"))
	u.OOMKills = int(readKeys(filepath.Join(dir, "memory.events"), "oom_kill"))
	return u, nil
}

func readInt(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}

// readKeys adds up the values of keys in a file of "key value" lines; what is
// not there counts as zero.
func readKeys(path string, keys ...string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	var sum int64
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains(keys, key) {
			n, _ := strconv.ParseInt(value, 10, 64)
			sum += n
		}
	}
	return sum
}
