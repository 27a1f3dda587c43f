package config

import (
	"strings"
	"testing"
)

func TestThePoolsSizeFollowsFromTheMachine(t *testing.T) {
	const GiB = 1 << 30
	for _, c := range []struct {
		size   string
		m      Machine
		python int
		others int
		memory int64
	}{
		{"auto", Machine{2, 24 * GiB}, 100, 6, 3 * GiB},
		{"auto", Machine{2, 4*GiB - 1}, 20, 2, GiB/2 - 1},
		{"auto", Machine{1, GiB / 2}, 5, 2, GiB / 16},
		{"auto", Machine{64, 256 * GiB}, 128, 16, 32 * GiB},
		{"auto", Machine{4, 0}, 128, 12, 0},
		{"3", Machine{64, 256 * GiB}, 3, 3, 32 * GiB},
		{"0", Machine{2, 8 * GiB}, 0, 0, GiB},
	} {
		cfg, err := Load(Sources{Getenv: env("ATOLL_POOL_SIZE", c.size)})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := cfg.Pool(c.m), (Pool{c.python, c.others, c.memory}); got != want {
			t.Errorf("%s on %+v is %+v, want %+v", c.size, c.m, got, want)
		}
	}
	cfg, err := Load(Sources{Getenv: env("ATOLL_POOL_MEMORY", "1GiB")})
	if err != nil || cfg.Pool(Machine{2, 24 * GiB}).Memory != GiB {
		t.Errorf("pool_memory of 1 GiB gives %+v, %v", cfg.Pool(Machine{2, 24 * GiB}), err)
	}
	for _, text := range []string{"-1", "many", "1001", "1.5"} {
		if _, err := Load(Sources{Getenv: env("ATOLL_POOL_SIZE", text)}); err == nil || !strings.Contains(err.Error(), "pool_size") {
			t.Errorf("pool_size %s: %v", text, err)
		}
	}
}

func TestFreeMemory(t *testing.T) {
	if free, all := FreeMemory(), ThisMachine().Memory; free < 1<<20 || free > all {
		t.Errorf("%d bytes of %d are free", free, all)
	}
}

func TestThisMachineIsKnown(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.Memory < 64<<20 || m.Memory > 1<<46 {
		t.Errorf("this machine is %+v", m)
	}
	cfg, err := Load(Sources{Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	if note := cfg.Note("pool_size"); !strings.Contains(note, "for Python") {
		t.Errorf("the note on pool_size is %q", note)
	}
	if note := cfg.Note("listen"); note != "" {
		t.Errorf("the note on listen is %q", note)
	}
}
