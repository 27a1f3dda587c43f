// Package placement chooses the machine of a new sandbox. Its functions depend only on their
// arguments: a snapshot of the machines.
package placement

import "slices"

// Candidate is a machine that may run a new sandbox, as it announced itself last.
type Candidate struct {
	Executor     string // name of the machine's executor
	Sandboxes    int    // named sandboxes, including sleeping ones
	MaxSandboxes int    // limit of Sandboxes; 0 for none
	FreeMemory   int64  // bytes that the machine can still use; 0 if unknown
	CPUs         int    // processors of the machine; 0 if unknown
	Draining     bool   // the machine shuts down and takes no new sandboxes
}

// choices is how many random machines each choice compares. With three, gateways that share an
// outdated snapshot still spread their sandboxes.
const choices = 3

// The load of a machine is a number of sandboxes per capacity. These constants say how many sandboxes
// one processor, and how many bytes one sandbox is expected to use. Most sandboxes sleep or wait.
const (
	perCPU    = 50
	perMemory = 128 << 20
)

// Order returns up to limit machines that can take a new sandbox, in the order in which to try them. It
// leaves out machines that drain or are full, and repeatedly picks the machine with the least load of
// three random ones. random returns a number from 0 to n-1, such as rand.IntN.
func Order(all []Candidate, limit int, random func(n int) int) []Candidate {
	rest := slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return !c.Fits() })
	limit = min(max(limit, 0), len(rest))
	for at := range limit {
		// Move the choices to the front of the rest, and the best of them to its place.
		best := at
		for i := at; i < min(at+choices, len(rest)); i++ {
			j := i + random(len(rest)-i)
			rest[i], rest[j] = rest[j], rest[i]
			if rest[i].Load() < rest[best].Load() {
				best = i
			}
		}
		rest[at], rest[best] = rest[best], rest[at]
	}
	return rest[:limit]
}

// Fits reports whether c takes new sandboxes.
func (c Candidate) Fits() bool {
	return !c.Draining && (c.MaxSandboxes <= 0 || c.Sandboxes < c.MaxSandboxes)
}

// Load is the share of c's scarcest capacity that is in use, about: 0 for an idle machine, 1 for one at
// its limit, more beyond.
func (c Candidate) Load() float64 {
	used := float64(max(c.Sandboxes, 0))
	load := used / float64(perCPU*max(c.CPUs, 1))
	if c.MaxSandboxes > 0 {
		load = max(load, used/float64(c.MaxSandboxes))
	}
	if c.FreeMemory > 0 {
		load = max(load, perMemory/(perMemory+float64(c.FreeMemory)))
	}
	return load
}
