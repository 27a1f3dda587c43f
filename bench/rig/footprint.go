package rig

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Footprint is what a server has in the machine, sandboxes and all.
type Footprint struct {
	Sandboxes  int // with a folder
	Processes  int // in control groups of the server's sandboxes, or of ones that are gone
	Groups     int // control groups for sandboxes
	Mounts     int // of the whole machine
	Files      int // in the data folder, without outputs and streams, which stay until they expire
	FDs        int // of the server process
	Goroutines int
	RSS        int64 // bytes, of the server process
}

// Footprint counts. The pool must be full, and nothing may run.
func (s *Server) Footprint(ctx context.Context) (f Footprint, err error) {
	sandboxes, err := s.Sandboxes()
	if err != nil {
		return f, err
	}
	if f.Sandboxes = len(sandboxes); f.Sandboxes == 0 {
		return f, fmt.Errorf("the pool is empty, so the server's control group cannot be found")
	}
	groups := filepath.Dir(sandboxes[0].Group)
	entries, err := os.ReadDir(groups)
	if err != nil {
		return f, fmt.Errorf("the sandboxes have no control groups: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			f.Groups++
		}
	}
	procs, err := processes()
	if err != nil {
		return f, err
	}
	for _, p := range procs {
		if strings.Contains(p.groups, "/"+filepath.Base(groups)+"/") {
			f.Processes++
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return f, err
	}
	f.Mounts = strings.Count(string(mounts), "\n")
	kept := []string{filepath.Join(s.Data, "blobs", "outputs"), filepath.Join(s.Data, "nats")}
	if err := filepath.WalkDir(s.Data, func(path string, _ fs.DirEntry, err error) error {
		if slices.Contains(kept, path) {
			return fs.SkipDir
		}
		f.Files++
		return err
	}); err != nil {
		return f, err
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid))
	if err != nil {
		return f, err
	}
	f.FDs = len(fds)
	m, err := s.Metrics(ctx)
	if err != nil {
		return f, err
	}
	f.Goroutines = int(m.Sum("go_goroutines"))
	f.RSS = int64(m.Sum("process_resident_memory_bytes"))
	return f, nil
}
