package atolltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
)

// Trace is a data folder's trace on this machine: whatever exists only because
// of the servers that use it.
type Trace string

// Left is what was found of a trace.
type Left struct {
	Processes []string // all that mention the folder or are in a control group of it, the server's own process left out
	Mounts    []string
	Cgroups   []string
	Files     []string // of state, by path
}

func (l Left) String() string {
	var b strings.Builder
	for _, part := range []struct {
		name string
		list []string
	}{{"processes", l.Processes}, {"mounts", l.Mounts}, {"control groups", l.Cgroups}, {"files", l.Files}} {
		fmt.Fprintf(&b, "%d %s\n", len(part.list), part.name)
		for _, s := range part.list {
			fmt.Fprintf(&b, "    %.300s\n", s)
		}
	}
	return b.String()
}

// Counts are the numbers of what was found.
func (l Left) Counts() string {
	return fmt.Sprintf("%d processes, %d mounts, %d control groups, %d files", len(l.Processes), len(l.Mounts), len(l.Cgroups), len(l.Files))
}

// disk is the folder of what is large, state the one that holds every sandbox's own.
func (d Trace) disk() string  { return filepath.Join(string(d), "state") }
func (d Trace) state() string { return config.DefaultStateDir(string(d)) }

// Sandboxes returns the folders of the sandboxes that exist.
func (d Trace) Sandboxes() []string {
	found, _ := filepath.Glob(filepath.Join(d.state(), "*", "sb-*")) // the pattern is well formed
	return found
}

// Find looks for all of it.
func (d Trace) Find() (Left, error) {
	var l Left
	groups, err := d.groups()
	if err != nil {
		return l, err
	}
	l.Cgroups = groups
	if l.Processes, err = d.processes(groups); err != nil {
		return l, err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return l, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, string(d)) || strings.Contains(line, d.state()) {
			l.Mounts = append(l.Mounts, strings.TrimSpace(line))
		}
	}
	dirs := []string{d.disk()}
	if d.state() != d.disk() {
		dirs = append(dirs, d.state())
	}
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it went while we looked, or there is none
			}
			l.Files = append(l.Files, path)
			return err
		}))
	}
	return l, err
}

// groups finds the control groups of the processes that made sandboxes in the
// folder, whose names are derived from their folders'. TestNothingIsLeaked sees
// to it that they are found while there are any.
func (d Trace) groups() ([]string, error) {
	owners := []string{"server"}
	entries, _ := os.ReadDir(d.disk()) // commands come and go
	more, _ := os.ReadDir(d.state())
	for _, e := range append(entries, more...) {
		owners = append(owners, e.Name())
	}
	names := map[string]bool{}
	for _, owner := range owners {
		sum := sha256.Sum256([]byte(filepath.Join(d.disk(), owner)))
		names["atoll-"+hex.EncodeToString(sum[:6])] = true
	}
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // groups of others come and go
		}
		if e.IsDir() && (names[e.Name()] || names[filepath.Base(filepath.Dir(path))]) {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// Sweep removes what a killed server leaves to the next start, for a folder that no server
// will use any more: its state in memory, and control groups without a process.
func (d Trace) Sweep() error {
	groups, err := d.groups()
	errs := []error{err}
	slices.Reverse(groups) // the inner ones first
	for _, g := range groups {
		if err := os.Remove(g); !errors.Is(err, fs.ErrNotExist) { // hierarchies may be one
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(d.state()))...)
}

// processes lists those that have to do with the folder. Zombies that are left
// to the machine's init are its affair.
func (d Trace) processes(groups []string) ([]string, error) {
	member := map[string]bool{}
	for _, g := range groups {
		data, _ := os.ReadFile(filepath.Join(g, "cgroup.procs")) // it may be gone by now
		for _, pid := range strings.Fields(string(data)) {
			member[pid] = true
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		pid := e.Name()
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if err != nil || len(cmdline) == 0 && !member[pid] {
			continue
		}
		if member[pid] || bytes.Contains(cmdline, []byte(d)) || bytes.Contains(cmdline, []byte(d.state())) {
			found = append(found, pid+" "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte(" "))))
		}
	}
	return found, nil
}

// Gone returns when no sandbox of the folder is left in any way, and fails if
// that does not come about within a few seconds.
func (d Trace) Gone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		l, err := d.Find()
		if err != nil {
			return err
		}
		if len(l.Processes)+len(l.Mounts)+len(l.Cgroups)+len(d.Sandboxes()) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("left on the machine:\n%v", l)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
