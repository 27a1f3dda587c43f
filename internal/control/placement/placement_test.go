package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/control/placement"
)

// snapshot returns up to 20 random machines.
func snapshot(r *rand.Rand) []placement.Candidate {
	all := make([]placement.Candidate, r.IntN(20))
	for i := range all {
		all[i] = placement.Candidate{
			Executor: fmt.Sprint("exe_", i), Sandboxes: r.IntN(12), MaxSandboxes: r.IntN(3) * 5, FreeMemory: r.Int64N(8 << 30), CPUs: r.IntN(9), Draining: r.IntN(4) == 0,
		}
	}
	return all
}

// TestOrder checks for random snapshots that the order contains each machine that takes sandboxes
// once, and no other, and that the least loaded of any three is not the last choice.
func TestOrder(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := snapshot(r)
		before := slices.Clone(all)
		got := placement.Order(all, len(all), r.IntN)
		if !slices.Equal(all, before) {
			t.Fatalf("seed %d: the snapshot changed", seed)
		}
		want := map[placement.Candidate]bool{}
		for _, c := range all {
			if !c.Draining && (c.MaxSandboxes == 0 || c.Sandboxes < c.MaxSandboxes) {
				want[c] = true
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d of %d machines", seed, len(got), len(want))
		}
		for i, c := range got {
			if !want[c] {
				t.Fatalf("seed %d: %+v is there twice, or does not take sandboxes", seed, c)
			}
			delete(want, c)
			// Each choice is the best of three of the rest, so at least two of the rest are not better.
			better := 0
			for _, later := range got[i+1:] {
				if later.Load() < c.Load() {
					better++
				}
			}
			if rest := len(got) - i; better > max(rest-3, 0) {
				t.Fatalf("seed %d: %d of %d machines are better than choice %d", seed, better, rest, i)
			}
		}
		if n := len(placement.Order(all, 3, r.IntN)); n != min(3, len(got)) {
			t.Fatalf("seed %d: %d machines, want at most 3 of %d", seed, n, len(got))
		}
		again := placement.Order(all, 5, rand.New(rand.NewPCG(seed, 2)).IntN)
		if same := placement.Order(all, 5, rand.New(rand.NewPCG(seed, 2)).IntN); !slices.Equal(again, same) {
			t.Fatalf("seed %d: the order depends on more than its arguments", seed)
		}
	}
}

// TestLoad checks that more sandboxes never lower the load, and more capacity never raises it.
func TestLoad(t *testing.T) {
	for seed := range uint64(200) {
		for _, c := range snapshot(rand.New(rand.NewPCG(seed, 3))) {
			for what, other := range map[string]placement.Candidate{
				"sandboxes":  {Sandboxes: c.Sandboxes + 1, MaxSandboxes: c.MaxSandboxes, FreeMemory: c.FreeMemory, CPUs: c.CPUs},
				"memory":     {Sandboxes: c.Sandboxes, MaxSandboxes: c.MaxSandboxes, FreeMemory: max(c.FreeMemory/2, 1), CPUs: c.CPUs},
				"processors": {Sandboxes: c.Sandboxes, MaxSandboxes: c.MaxSandboxes, FreeMemory: c.FreeMemory, CPUs: c.CPUs / 2},
			} {
				if other.Load() < c.Load() || c.Load() < 0 {
					t.Errorf("%s: %+v has the load %v, %+v the load %v", what, c, c.Load(), other, other.Load())
				}
			}
		}
	}
}

// TestBalance starts sandboxes on machines of two sizes from snapshots that are outdated, and checks
// that no machine gets much more than its share.
func TestBalance(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	all := make([]placement.Candidate, 50)
	for i := range all {
		all[i] = placement.Candidate{Executor: fmt.Sprint(i), CPUs: 4 + i%2*4, FreeMemory: 64 << 30}
	}
	var old []placement.Candidate
	for n := range 15_000 {
		if n%100 == 0 {
			old = slices.Clone(all)
		}
		first := placement.Order(old, 1, r.IntN)[0]
		i := slices.IndexFunc(all, func(c placement.Candidate) bool { return c.Executor == first.Executor })
		all[i].Sandboxes++
	}
	mean := 15_000.0 / (50 * 6)
	for _, c := range all {
		if share := float64(c.Sandboxes) / float64(c.CPUs); share < mean/1.3 || share > mean*1.3 {
			t.Errorf("%+v has %.1f sandboxes for each processor, the mean is %.1f", c, share, mean)
		}
	}
}

func BenchmarkOrder(b *testing.B) {
	all := make([]placement.Candidate, 1000)
	for i := range all {
		all[i] = placement.Candidate{Executor: fmt.Sprint(i), Sandboxes: i % 97, MaxSandboxes: 1000, CPUs: 1 + i%8, FreeMemory: int64(i) << 26}
	}
	for b.Loop() {
		placement.Order(all, 5, rand.IntN)
	}
}
