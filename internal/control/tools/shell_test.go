package tools

import "testing"

// TestRefusedFork checks that refusedFork recognizes a command that may not start programs, and no
// other failure.
func TestRefusedFork(t *testing.T) {
	for stderr, want := range map[string]bool{
		"/bin/sh: 1: Cannot fork": true, "bash: fork: retry": true, "sh: can't fork: no": true, "[Errno 1] Operation not permitted": true,
		"OSError: [Errno 101] Network is unreachable": false, "it does not work": false,
	} {
		if got := refusedFork(&ShellOutput{ExitCode: 1, Stderr: stderr}); got != want {
			t.Errorf("%q: %t", stderr, got)
		}
	}
}
