package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal and returns the user's end and the program's.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return user, program
}

// typeRaw types keys once the program has set raw mode. Before that the kernel would take
// Ctrl-C and Ctrl-D.
func typeRaw(ctx context.Context, user, program *os.File, keys string) error {
	for {
		state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		if err != nil {
			return err
		}
		if state.Lflag&unix.ICANON == 0 {
			_, err := user.WriteString(keys)
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestLineEditor(t *testing.T) {
	user, program := openTerminal(t)
	path := filepath.Join(t.TempDir(), "state", "chat_history")
	history := openHistory(path)
	e := newLineEditor(program, io.Discard, history, chatCommands().names())
	const up, left = "\x1b[A", "\x1b[D"
	for _, c := range []struct {
		keys, want string
		err        error
		forget     bool
	}{
		{keys: "helo" + left + "l\r", want: "hello"},
		{keys: "world\r", want: "world"},
		{keys: "secret answer\r", want: "secret answer", forget: true},
		{keys: up + "\r", want: "world"},
		{keys: up + up + "!\r", want: "hello!"},
		{keys: "/fi\t/tmp\r", want: "/files /tmp"},
		{keys: "half a li\x03", err: errInterrupted},
		{keys: "after it\r", want: "after it"},
		{keys: "\x04", err: io.EOF},
	} {
		typed := make(chan error, 1)
		go func() { typed <- typeRaw(t.Context(), user, program, c.keys) }()
		got, err := e.read(t.Context(), "> ", !c.forget)
		if err := <-typed; err != nil {
			t.Fatal(err)
		}
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: got %q, %v", c.keys, got, err)
		}
	}
	if err := history.save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history file: %v, %v", info, err)
	}
	if got := strings.Join(openHistory(path).lines, "|"); got != "hello|world|hello!|/files /tmp|after it" {
		t.Errorf("the history: %q", got)
	}
}

// TestHistoryOfTwoChats checks that concurrent chats append to a shared history file without losing
// each other's lines.
func TestHistoryOfTwoChats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat_history")
	old := openHistory(path)
	old.Add("old")
	if err := old.save(); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for i := range 8 {
		h := openHistory(path)
		h.Add(fmt.Sprint("line ", i))
		done.Go(func() {
			if err := h.save(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	lines := openHistory(path).lines
	slices.Sort(lines)
	if got := strings.Join(lines, "|"); got != "line 0|line 1|line 2|line 3|line 4|line 5|line 6|line 7|old" {
		t.Errorf("the history: %q", got)
	}
	again := openHistory(path)
	if err := again.save(); err != nil || len(openHistory(path).lines) != 9 {
		t.Errorf("a chat without lines leaves %q, %v", openHistory(path).lines, err)
	}
}
