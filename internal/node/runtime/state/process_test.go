package state

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// child starts a process that lives until the test ends.
func child(t *testing.T) (*exec.Cmd, *Process) {
	t.Helper()
	cmd := exec.Command("cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	start, err := StartTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenProcess(Record{Pid: cmd.Process.Pid, Start: start})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return cmd, p
}

func TestCloseTellsOfAnEndThatWasNotSeen(t *testing.T) {
	for range 50 {
		cmd, p := child(t)
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		p.Close()
		select {
		case <-p.Done():
		default:
			t.Fatal("the process has ended, and Done is open")
		}
	}
}

func TestDoneTellsOfAnEndAtOnce(t *testing.T) {
	for range 200 {
		cmd, p := child(t)
		cmd.Process.Kill()
		cmd.Wait()
		select {
		case <-p.Done():
		default:
			t.Fatal("the process has ended, and Done is open")
		}
	}
}

func TestKillAfterCloseHitsNoOtherProcess(t *testing.T) {
	_, gone := child(t)
	gone.Close()
	_, other := child(t) // is given the same descriptor
	if err := gone.Kill(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Kill after Close: %v", err)
	}
	select {
	case <-other.Done():
		t.Error("another process was killed")
	case <-time.After(100 * time.Millisecond):
	}
}

func TestAReusedPidIsAnother(t *testing.T) {
	cmd, _ := child(t)
	start, err := StartTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenProcess(Record{Pid: cmd.Process.Pid, Start: start - 1}); err == nil {
		t.Error("a process that started at another time was taken for the one on record")
	}
}

// After a crash, the pid of a dead sandbox may become the id of a thread of any process.
func TestAThreadIsNotTheProcessOnRecord(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	threads := 0
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil || tid == os.Getpid() {
			continue
		}
		start, err := StartTime(tid)
		if err != nil {
			continue // the thread ended
		}
		threads++
		for _, start := range []uint64{start, start - 1} {
			if _, err := OpenProcess(Record{Pid: tid, Start: start}); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("open thread %d: got %v, want %v", tid, err, runtime.ErrNotFound)
			}
		}
	}
	if threads == 0 {
		t.Fatal("this process has no threads")
	}
}
