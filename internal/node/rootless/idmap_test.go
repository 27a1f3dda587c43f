package rootless

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLayOut(t *testing.T) {
	for name, c := range map[string]struct{ subordinate, want []idRange }{
		"the caller alone": {nil, []idRange{{0, 1000, 1}}},
		"a full range":     {[]idRange{{outside: 100000, count: 65536}}, []idRange{{0, 1000, 1}, {1, 100000, 65536}}},
		"too few to reach 65534": {
			[]idRange{{outside: 100000, count: 10}}, []idRange{{0, 1000, 1}, {1, 100000, 9}, {nobodyID, 100009, 1}},
		},
		"one": {[]idRange{{outside: 100000, count: 1}}, []idRange{{0, 1000, 1}, {nobodyID, 100000, 1}}},
		"two ranges": {
			[]idRange{{outside: 100000, count: 2}, {outside: 200000, count: 1}},
			[]idRange{{0, 1000, 1}, {1, 100000, 2}, {nobodyID, 200000, 1}},
		},
	} {
		if got := layOut(1000, c.subordinate); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSubordinateIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subuid")
	text := "other:1:2\nme:100000:65536\nbroken\nme:x:1\nme:7:0\n1000:300000:5\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := subordinateIDs(file, "me", 1000)
	if want := []idRange{{0, 100000, 65536}, {0, 300000, 5}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := subordinateIDs(file, "nobody", 65534); err == nil {
		t.Errorf("a user without any: %v", got)
	}
}
