package daemonclient_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

func testTerminal(t *testing.T, c *daemonclient.Client) {
	spec := process.Spec{Argv: []string{"bash", "--norc", "-i"}, Env: append(slices.Clone(clienttest.Env), "TERM=xterm", "PS1=> "), Terminal: &process.Size{Rows: 30, Columns: 100}, Lossless: true}
	p := start(t, c, spec)
	o := follow(t, c, p.ID, 0)
	until(t, o, "> ")
	// A shell sets the size that it has just read while it makes its prompt: a resize in
	// between would be undone.
	untilPrompt := func(text string) {
		t.Helper()
		got, _ := until(t, o, text)
		if _, behind, _ := strings.Cut(got, text); !strings.Contains(behind, "> ") {
			until(t, o, "> ")
		}
	}
	type step struct{ send, want string }
	for _, s := range []step{
		{"stty size; tty; test -t 0 && test -t 1 && test -t 2 && echo ter'minal'\n", "terminal"},
		{"stty size\n", "30 100"},
		{"trap 'echo $(stty size) now' WINCH; echo tr'apped'\n", "trapped"},
	} {
		if _, err := c.Write(t.Context(), p.ID, []byte(s.send)); err != nil {
			t.Fatal(err)
		}
		untilPrompt(s.want)
	}
	if err := c.Resize(t.Context(), p.ID, process.Size{Rows: 50, Columns: 132}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), p.ID, []byte("\nstty size\n")); err != nil {
		t.Fatal(err)
	}
	until(t, o, "50 132")
	if _, err := c.Write(t.Context(), p.ID, []byte("sleep 4714; echo status $?\n")); err != nil {
		t.Fatal(err)
	}
	until(t, o, "4714")
	appears(t, c, "4714")
	if _, err := c.Write(t.Context(), p.ID, []byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), p.ID, []byte("echo st'ill'\n")); err != nil {
		t.Fatal(err)
	}
	untilPrompt("still") // the end of input is for a shell that waits for some
	if err := c.CloseInput(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.Signal != 0 {
		t.Errorf("got %+v", got)
	}
	if n := sleepers(t, c, "4714"); n != "0" {
		t.Errorf("Ctrl-C left %s", n)
	}
	kind(t, c.Resize(t.Context(), start(t, c, shell("true")).ID, process.Size{}), fault.Invalid, "no terminal")
}

func testJobControl(t *testing.T, c *daemonclient.Client) {
	spec := process.Spec{Argv: []string{"bash", "--norc", "-i"}, Env: append(slices.Clone(clienttest.Env), "PS1=> "), Terminal: &process.Size{Rows: 24, Columns: 80}, Lossless: true}
	p := start(t, c, spec)
	o := follow(t, c, p.ID, 0)
	until(t, o, "> ")
	say := func(text, want string) {
		t.Helper()
		if _, err := c.Write(t.Context(), p.ID, []byte(text)); err != nil {
			t.Fatal(err)
		}
		until(t, o, want)
	}
	say("sleep 4715\n", "4715")
	appears(t, c, "4715")
	say("\x1a", "Stopped")
	say("bg; jobs\n", "Running")
	say("kill %1; wait; echo ended:$?\n", "ended:")
	// What is in the foreground gets the group's signals.
	say("sleep 4716\n", "4716")
	appears(t, c, "4716")
	if err := c.Signal(t.Context(), p.ID, syscall.SIGINT, true); err != nil {
		t.Fatal(err)
	}
	until(t, o, "> ")
	say("echo al'ive'\n", "alive")
	say("exit 9\n", "exit")
	if got := all(t, o); got.Code != 9 {
		t.Errorf("got %+v", got)
	}
}
