// Package runtimetest is the suite that every runtime.Runtime passes. It makes
// real sandboxes, runs a program of its own in them, and counts what is left
// on the host afterwards.
package runtimetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/test/check"
)

// Runtime is a runtime that lets go of its state folder when closed.
type Runtime interface {
	runtime.Runtime
	Close() error
}

// Driver is an implementation under test.
type Driver struct {
	// Open opens a runtime on a state folder. groups is nil where the machine
	// or NoCgroups has none.
	Open func(t testing.TB, state string, groups *cgroup.Parent) Runtime

	// Rootfs is what sandboxes start from. It holds what Files has; nil means
	// Image.
	Rootfs func(t testing.TB) runtime.Rootfs

	// NoCgroups says that there are no control groups: use is known all the
	// same, memory is for the caller to hold, processors are held whole.
	NoCgroups bool

	// NoMounts says that the host has no user for programs' files;
	// then mounts must be refused with runtime.ErrUnsupported.
	NoMounts bool

	// NoNetwork says that sandboxes cannot have a network: then Create must say
	// runtime.ErrUnsupported.
	NoNetwork bool

	// Checkpoint says that Checkpoint and Restore work. If not, they must say
	// runtime.ErrUnsupported.
	Checkpoint bool
}

// Run runs the suite. Each part has a state folder of its own and checks that
// it leaves nothing behind.
func Run(t *testing.T, d Driver) {
	if d.Rootfs == nil {
		d.Rootfs = Image
	}
	if state := os.Getenv(victimVariable); state != "" {
		becomeVictim(t, d, state)
		return
	}
	parts := []part{
		{"Life", testLife},
		{"TakeOver", testTakeOver},
		{"SuddenEnd", testSuddenEnd},
		{"KilledHost", testKilledHost},
		{"FailedCreate", testFailedCreate},
		{"Concurrent", testConcurrent},
		{"Isolation", testIsolation},
		{"Apart", testApart},
		{"Disk", testDisk},
		{"Tasks", testTasks},
		{"Memory", testMemory},
		{"CPU", testCPU},
		{"Checkpoint", testCheckpoint},
		{"Network", testNetwork},
		{"Freeze", testFreeze},
		{"Sleep", testSleep},
		{"Shared", testShared},
		{"Resume", testResume},
		{"Unsavable", testUnsavable},
		{"Prepare", testPrepare},
		{"Become", testBecome},
	}
	if d.NoMounts {
		parts = append(parts, part{"NoMounts", testNoMounts})
	} else {
		parts = append(parts, part{"Mounts", testMounts}, part{"MountedLater", testMountedLater},
			part{"MountFailures", testMountFailures}, part{"MountCheckpoint", testMountCheckpoint}, part{"Kill", testKill})
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { part.test(t, newFixture(t, d)) })
	}
}

// part is a part of the suite.
type part struct {
	name string
	test func(*testing.T, *fixture)
}

// BinVariable names another folder than the repository's bin for the programs
// that 'make build' makes.
const BinVariable = "ATOLL_TEST_BIN"

// Binary returns the path of a program that 'make build' made.
func Binary(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(BinVariable)
	if dir == "" {
		dir = filepath.Join(repository(t), "bin")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run 'make build', or set %s", err, BinVariable)
	}
	return path
}

// repository returns the folder of go.mod above the working directory.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

var must = check.Must
