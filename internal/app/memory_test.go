package app

import (
	"runtime/debug"
	"testing"

	"github.com/atoll-run/atoll/internal/app/config"
)

// TestLimitMemory: the limit comes from the machine unless the environment has one.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	unset := func(string) string { return "" }
	if got := limitMemory(unset, config.Machine{}); got != before {
		t.Errorf("%d on a machine whose memory is not known", got)
	}
	if got := limitMemory(func(name string) string { return map[string]string{"GOMEMLIMIT": "1GiB"}[name] }, config.Machine{Memory: 8 << 30}); got != before {
		t.Errorf("%d despite the environment", got)
	}
	if got := limitMemory(unset, config.Machine{Memory: 8 << 30}); got != 4<<30 {
		t.Errorf("%d on a machine with 8 GiB", got)
	}
}
