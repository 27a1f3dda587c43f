package main

const fastPath = "pkg/sentry/platform/systrap/metrics.go"

// change is a text that a file of gVisor has exactly once, and what it becomes.
type change struct {
	file     string // in gVisor's module
	old, new string
}

var changes = []change{
	// Systrap's threads spin for work rather than sleep once they have been busy for
	// 0.8 ms. A sandbox's programs are most often over before that is of use, while the
	// threads that spin take the processors from the programs. They begin to after 20 ms
	// of work, and again after each pause.
	{fastPath, "fastPathBackoffMin             = 2\n", "fastPathBackoffMin             = 50\n"},
	{fastPath, "\ts.curState = sentryOffStubOff\n\n\t// Drop any wakeup", `	s.curState = sentryOffStubOff
	s.stubFPBackoff = max(s.stubFPBackoff, fastPathBackoffMin)
	s.sentryFPBackoff = max(s.sentryFPBackoff, fastPathBackoffMin)

	// Drop any wakeup`},
}
