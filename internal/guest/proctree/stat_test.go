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
		if got, ok := parse(text); !ok || got != (task{parent: parent, session: session}) {
			t.Errorf("%q has parent %d and session %d: %+v, %t", text, parent, session, got, ok)
		}
		if got, ok := parse(fmt.Sprintf("4711 (%s) T %d 8 %d 0\n", name, parent, session)); !ok || !got.stopped {
			t.Errorf("%q is stopped", name)
		}
		if _, ok := parse(fmt.Sprintf("4711 (%s) Z %d 8 %d 0\n", name, parent, session)); ok {
			t.Errorf("%q is no zombie", name)
		}
		parse(name) // which is none
	})
}
