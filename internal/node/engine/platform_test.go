package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestAnotherUsersStateFolderIsRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"writable by others": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
		"a link": func(path string) error { return os.Symlink(t.TempDir(), path) },
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			state := filepath.Join(dir, "state")
			if err := make(state); err != nil {
				t.Fatal(err)
			}
			_, err := openHost(t.Context(), Platform{State: state, Disk: filepath.Join(dir, "disk"), Name: NewName(), Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), "state_dir") {
				t.Errorf("openHost: %v", err)
			}
		})
	}
}

// TestStateElsewhere checks that processes of a data folder respect each other
// when one has its state in memory and the other on disk.
func TestStateElsewhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // the sandbox's kernel runs as the user nobody
		t.Fatal(err)
	}
	disk := platformIn(t, dir, filepath.Join(dir, "disk"))
	memory := platformIn(t, dir, filepath.Join(dir, "memory"))
	first, err := openHost(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	other := memory
	other.Name = NewName()
	second, err := openHost(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.disk); err != nil {
		t.Errorf("the folder of a living process is gone: %v", err)
	}
	if _, err := openHost(t.Context(), memory); err == nil {
		t.Error("two processes of one name")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	// The first ends without a word, and leaves something.
	left := filepath.Join(first.disk, "sb-0123456789abcdef")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first.closer.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := openHost(t.Context(), memory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what an earlier process left on disk is still there: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "memory")); !os.IsNotExist(err) {
		t.Errorf("the folder in memory is still there: %v", err)
	}
}

// TestRemainsDoNotStopAStart leaves a sandbox whose pid is a thread's by now, and
// sandboxes and folders that cannot be removed until the test lets go of them.
func TestRemainsDoNotStopAStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := platformIn(t, dir, filepath.Join(dir, "disk"))
	first, err := openHost(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	reused := filepath.Join(first.dir, "sb-00000000000000aa")
	stuck := []string{
		filepath.Join(first.dir, "sb-00000000000000bb"), filepath.Join(first.homes, "sb-00000000000000cc"), filepath.Join(first.disk, mountsDir, "sb-00000000000000dd"),
	}
	if err := os.Mkdir(reused, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(reused, "sandbox.json"), fmt.Appendf(nil, `{"Pid": %d, "Start": 1}`, otherThread(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range stuck {
		held := filepath.Join(folder, "held")
		if err := os.MkdirAll(held, 0o700); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(folder)) == mountsDir { // an unmount would succeed
			if err := os.WriteFile(filepath.Join(held, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := unix.Mount("tmpfs", held, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(held, unix.MNT_DETACH) })
	}
	if err := first.letGo(); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	if p.Cleanup, err = cleanup.New(p.Log, reg); err != nil {
		t.Fatal(err)
	}
	defer p.Cleanup.Close()
	second, err := openHost(t.Context(), p)
	if err != nil {
		t.Fatalf("remains of single sandboxes stop the start: %v", err)
	}
	defer second.Close()
	if _, err := os.Stat(reused); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the sandbox whose pid is a thread's by now is left: %v", err)
	}
	for step, want := range map[string]float64{"sandbox": 1, "folder": 1, "mount": 1} {
		if got := counted(t, reg, step); got < want {
			t.Errorf("%v failures of step %s are counted, want %v", got, step, want)
		}
	}
	for _, folder := range stuck {
		held := filepath.Join(folder, "held")
		_ = unix.Unmount(held, unix.MNT_DETACH)
		if err := os.RemoveAll(filepath.Join(held, "file")); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range stuck {
		atolltest.Until(t, time.Minute, "a retry removes "+folder, func() bool {
			_, err := os.Stat(folder)
			return errors.Is(err, fs.ErrNotExist)
		})
	}
}

// otherThread is the id of a thread that does not lead its process.
func otherThread(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil && tid != os.Getpid() {
			return tid
		}
	}
	t.Fatal("this process has no other thread")
	return 0
}

// counted returns how many failures of a step a registry has.
func counted(t *testing.T, reg *prometheus.Registry, step string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "atoll_cleanup_failures_total" && l.GetValue() == step {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func platformIn(t *testing.T, dir, state string) Platform {
	t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(binary)
	return Platform{
		Runsc: filepath.Join(bin, "atoll-runsc"), Guest: filepath.Join(bin, "atoll-guest"),
		State: state, Disk: filepath.Join(dir, "disk"), Name: Server, Log: slog.New(slog.DiscardHandler),
	}
}
