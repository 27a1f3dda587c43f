package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CPUSoFar is the processor time that the server process has used, to the nanosecond.
// Threads that have ended meanwhile are missing from it.
func (s *Server) CPUSoFar() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.Pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(err, fmt.Errorf("process %d is not there, or its kernel does not tell its processor time", s.Pid))
	}
	var sum time.Duration
	for _, path := range threads {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since it was listed
		}
		first, _, _ := strings.Cut(string(data), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// Watch is the processor time that the sandboxes of a server have used, those that are
// gone included, read all the time from their common control group.
type Watch struct {
	group string
	stop  chan struct{}
	done  chan error
	at    []time.Time // of readings
	used  []time.Duration
}

// between is how often a Watch reads.
const between = time.Millisecond

// WatchSandboxes begins to read. There must be a sandbox. The caller ends it.
func (s *Server) WatchSandboxes() (*Watch, error) {
	all, err := s.Sandboxes()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].Group == "" {
		return nil, errors.New("the sandboxes have no control groups, so what they use cannot be told")
	}
	w := &Watch{group: filepath.Dir(all[0].Group), stop: make(chan struct{}), done: make(chan error, 1)}
	if err := w.read(); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

func (w *Watch) run() {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			w.done <- nil
			return
		case <-tick.C:
			if err := w.read(); err != nil {
				w.done <- err
				return
			}
		}
	}
}

func (w *Watch) read() error {
	used, err := groupCPU(w.group)
	if err == nil {
		w.at, w.used = append(w.at, time.Now()), append(w.used, used)
	}
	return err
}

// End stops reading. After an error some of what was used is not known.
func (w *Watch) End() error {
	close(w.stop)
	return <-w.done
}

// UsedAt is what had been used at a time, once the Watch has ended: between two
// readings a part of the difference.
func (w *Watch) UsedAt(t time.Time) time.Duration {
	i, _ := slices.BinarySearchFunc(w.at, t, time.Time.Compare)
	switch i {
	case 0:
		return w.used[0]
	case len(w.at):
		return w.used[i-1]
	}
	part := float64(t.Sub(w.at[i-1])) / float64(w.at[i].Sub(w.at[i-1]))
	return w.used[i-1] + time.Duration(part*float64(w.used[i]-w.used[i-1]))
}

// groupCPU is what a control group has used of the processors.
func groupCPU(dir string) (time.Duration, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	if err == nil {
		ns, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		return time.Duration(ns), err
	}
	if data, err = os.ReadFile(filepath.Join(dir, "cpu.stat")); err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var us int64
		if _, err := fmt.Sscanf(line, "usage_usec %d", &us); err == nil {
			return time.Duration(us) * time.Microsecond, nil
		}
	}
	return 0, fmt.Errorf("%s does not tell its processor time", dir)
}
