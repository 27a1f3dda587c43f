package environments

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestFitFiles(t *testing.T) {
	const gib = 1 << 30
	l := runtime.Limits{Memory: 2 * gib, Root: gib, Tmp: gib / 4, Shm: gib / 8}
	for _, test := range []struct {
		memory *int64
		root   *int64 // after it
	}{
		{nil, nil},
		{new(int64(4 * gib)), nil},
		{new(int64(gib)), new(int64(gib / 4))},
	} {
		c := tenant.LimitsChange{Memory: test.memory}
		fitFiles(&c, l)
		if (c.Root == nil) != (test.root == nil) || c.Root != nil && (*c.Root != *test.root || *c.Tmp != *test.root || *c.Shm != *test.root/2) {
			t.Errorf("memory %v: %+v", test.memory, c)
		}
	}
}

func TestHyphenated(t *testing.T) {
	for from, want := range map[string]string{"a": "a", " my  data set ": "my-data-set"} {
		if got := hyphenated(from); got != want {
			t.Errorf("%q is %q, want %q", from, got, want)
		}
	}
}
