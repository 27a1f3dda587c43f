package proctree

import (
	"fmt"
	"testing"
)

// FuzzName: whatever a process calls itself, its parent and session are what the
// kernel says.
func FuzzName(f *testing.F) {
	for _, name := range []string{"sh", "a b", ") Z 1 1 1 (", ")", "(", "", "\n", ") S 1 2 3"} {
		f.Add(name, 7, 9)
	}
	f.Fuzz(func(t *testing.T, name string, parent, session int) {
		name = name[:min(len(name), 64)]
		text := fmt.Sprintf("4711 (%s) S %d 8 %d 34816 4711 4194304 0 0\n", name, parent, session)
		if p, s, ok := parse(text); !ok || p != parent || s != session {
			t.Errorf("%q has parent %d and session %d: %d and %d, %t", text, parent, session, p, s, ok)
		}
		if _, _, ok := parse(fmt.Sprintf("4711 (%s) Z %d 8 %d 0\n", name, parent, session)); ok {
			t.Errorf("%q is no zombie", name)
		}
		parse(name) // which is none
	})
}
