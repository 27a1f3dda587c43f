package state

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

func open(t *testing.T) (*Dir, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made", "if needed")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, path
}

func spec() runtime.Spec {
	return runtime.Spec{
		ID: runtime.NewID(), Limits: runtime.DefaultLimits(),
		Rootfs: runtime.Rootfs{Tree: "/t", Binds: []runtime.Bind{{Source: "/a b", Target: "/é"}}},
		Labels: map[string]string{"pool": "x", "": "\n\x00\""},
	}
}

func TestTheFolderHasOneOwner(t *testing.T) {
	d, path := open(t)
	if second, err := Open(path); err == nil {
		second.Close()
		t.Error("a second owner was let in")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(path)
	if err != nil {
		t.Fatalf("after the first has left: %v", err)
	}
	second.Close()
}

func TestARecordIsKeptUntilRemoved(t *testing.T) {
	d, path := open(t)
	s := spec()
	if err := d.Create(s); err != nil {
		t.Fatal(err)
	}
	want := Record{Spec: s, Pid: 4242, Start: math.MaxUint64}
	if err := d.Write(want); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d, err := Open(path) // another process
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got, err := d.Read(s.ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
	if ids, err := d.List(); err != nil || !slices.Equal(ids, []runtime.ID{s.ID}) {
		t.Errorf("List: %v, %v", ids, err)
	}
	if err := d.Create(s); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second sandbox of one ID: %v", err)
	}
	if got, err := d.Read(s.ID); err != nil || got.Pid != want.Pid {
		t.Errorf("after that, read %+v, %v", got, err)
	}
	for range 2 {
		if err := d.Remove(s.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Read(s.ID); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("read of a removed one: %v", err)
	}
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	d, _ := open(t)
	s := spec()
	s.Limits.CPU = math.NaN() // which no record can hold
	if err := d.Create(s); err == nil {
		t.Error("a record of NaN was written")
	}
	if ids, err := d.List(); err != nil || len(ids) != 0 {
		t.Errorf("List: %v, %v", ids, err)
	}
}

func TestNothingButAnIDBecomesAPath(t *testing.T) {
	d, path := open(t)
	outside := filepath.Join(filepath.Dir(path), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []runtime.ID{"", ".", "..", "../outside", "sb-", "sb-0123456789abcdeF", "sb-0123456789abcdef/..", "sb-0123456789abcdef\n"} {
		if err := d.Create(runtime.Spec{ID: id}); err == nil {
			t.Errorf("Create(%q) works", id)
		}
		if err := d.Remove(id); err == nil {
			t.Errorf("Remove(%q) works", id)
		}
		if _, err := d.Read(id); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("Read(%q): %v", id, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// TestWhatACrashLeaves: a folder without a record, and one with half of it, are
// listed, so that they are swept, and are no sandbox.
func TestWhatACrashLeaves(t *testing.T) {
	d, _ := open(t)
	empty, half := runtime.NewID(), runtime.NewID()
	for _, id := range []runtime.ID{empty, half} {
		if err := os.Mkdir(d.Path(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(d.Path(half, recordFile), []byte(`{"Spec":{"ID":"sb`), 0o600); err != nil {
		t.Fatal(err)
	}
	ids, err := d.List()
	if err != nil || len(ids) != 2 {
		t.Errorf("List: %v, %v", ids, err)
	}
	for _, id := range ids {
		if _, err := d.Read(id); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("Read: %v", err)
		}
	}
	if _, err := OpenProcess(Record{}); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("the process of an unfinished record: %v", err)
	}
}

// TestTheChannelOutlivesItsEnds: what one side wrote is there for the next to open
// the other side next.
func TestTheChannelOutlivesItsEnds(t *testing.T) {
	d, _ := open(t)
	s := spec()
	if err := d.Create(s); err != nil {
		t.Fatal(err)
	}
	stdin, stdout, err := d.OpenStdio(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer stdout.Close()
	for _, message := range []string{"first", "second"} {
		ch, err := d.OpenChannel(s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.ToGuest.WriteString(message); err != nil {
			t.Fatal(err)
		}
		if _, err := stdout.WriteString("to " + message); err != nil {
			t.Fatal(err)
		}
		ch.ToGuest.Close() // without having read
		ch.FromGuest.Close()
		if ch, err = d.OpenChannel(s.ID); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		if n, err := ch.FromGuest.Read(buf); err != nil || string(buf[:n]) != "to "+message {
			t.Errorf("the host read %q, %v", buf[:n], err)
		}
		if n, err := stdin.Read(buf); err != nil || string(buf[:n]) != message {
			t.Errorf("the guest read %q, %v", buf[:n], err)
		}
		// The host's end does not block for good where there is nothing.
		if err := ch.FromGuest.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.FromGuest.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an empty channel: %v", err)
		}
		ch.ToGuest.Close()
		ch.FromGuest.Close()
	}
}

func TestAZombieIsDead(t *testing.T) {
	cmd, p := child(t)
	start, err := StartTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if _, err := OpenProcess(Record{Pid: cmd.Process.Pid, Start: start}); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("a process that was not reaped: %v", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill of a dead process: %v", err)
	}
}
