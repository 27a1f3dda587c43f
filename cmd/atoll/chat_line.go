package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// maxHistory is the number of lines that the history file keeps.
const maxHistory = 500

// lineEditor reads lines from a terminal with editing, history and completion. It is for one
// goroutine. The terminal is in raw mode only while read waits, so that programs and Ctrl-C
// behave as usual in between.
type lineEditor struct {
	in      *os.File
	out     io.Writer
	history *lineHistory
	words   []string // what Tab completes at the start of a line
	term    *term.Terminal
	keys    *keyReader
}

func newLineEditor(in *os.File, out io.Writer, history *lineHistory, words []string) *lineEditor {
	return &lineEditor{in: in, out: out, history: history, words: words}
}

// read returns the next line. remember adds it to the history. The error is io.EOF after
// Ctrl-D, errInterrupted after Ctrl-C and the context's cause after its end.
func (e *lineEditor) read(ctx context.Context, prompt string, remember bool) (string, error) {
	state, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(e.in.Fd()), state) }()
	if e.term == nil {
		e.keys = &keyReader{Reader: e.in}
		e.term = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{e.keys, e.out}, "")
		e.term.History, e.term.AutoCompleteCallback = e.history, e.complete
	}
	if w, h, err := term.GetSize(int(e.in.Fd())); err == nil && w > 0 {
		_ = e.term.SetSize(w, h)
	}
	e.term.SetPrompt(prompt)
	e.history.paused = !remember
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() { // after ctx ends it waits for a key until the process exits
		line, err := e.term.ReadLine()
		done <- result{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-done:
		if errors.Is(r.err, term.ErrPasteIndicator) {
			r.err = nil
		}
		if errors.Is(r.err, io.EOF) && e.keys.last == 3 { // Ctrl-C; the library reports both as the end
			r.err = errInterrupted
		}
		if r.err != nil {
			e.term = nil // it would read the same key again
			_, _ = io.WriteString(e.out, "\r\n")
		}
		return r.line, r.err
	}
}

// complete completes a word at the start of a line at Tab.
func (e *lineEditor) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	matches := slices.DeleteFunc(slices.Clone(e.words), func(w string) bool { return !strings.HasPrefix(w, line[:pos]) })
	if pos == 0 || pos != len(line) || len(matches) != 1 {
		return line, pos, true // no tab in messages
	}
	return matches[0] + " ", len(matches[0]) + 1, true
}

// keyReader remembers the last key that was read.
type keyReader struct {
	io.Reader
	last byte
}

// Read reads one byte at a time, so that last is the key that ended a line.
func (r *keyReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p[:min(1, len(p))])
	if n == 1 {
		r.last = p[0]
	}
	return n, err
}

// lineHistory is the history of a lineEditor, kept in a file of the user, newest last.
type lineHistory struct {
	path   string // "" to keep nothing
	lines  []string
	added  []string // since it was opened
	paused bool
}

// openHistory reads a history; a file that cannot be read counts as empty.
func openHistory(path string) *lineHistory {
	return &lineHistory{path: path, lines: readHistory(path)}
}

func readHistory(path string) (lines []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	in := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	return newest(lines)
}

func newest(lines []string) []string { return lines[max(0, len(lines)-maxHistory):] }

// Add appends a line unless it is empty or repeats the one before.
func (h *lineHistory) Add(line string) {
	if h.paused || strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines, h.added = newest(append(h.lines, line)), newest(append(h.added, line))
}

// Len is the number of lines.
func (h *lineHistory) Len() int { return len(h.lines) }

// At returns the line i before the newest.
func (h *lineHistory) At(i int) string { return h.lines[len(h.lines)-1-i] }

// save adds the new lines to the file, readable by the user alone, since messages can hold
// secrets. Another chat may have added lines since: they stay.
func (h *lineHistory) save() error {
	if h.path == "" || len(h.added) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(h.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	lines := newest(append(readHistory(h.path), h.added...))
	whole := h.path + ".new" // a full disk costs the new lines alone
	if err := os.WriteFile(whole, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return errors.Join(err, os.Remove(whole))
	}
	if err := os.Rename(whole, h.path); err != nil {
		return err
	}
	h.added = nil
	return nil
}

// historyPath is the file that keeps the history of 'atoll chat', "" without a home folder.
func (a *cli) historyPath() string {
	if dir := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "atoll", "chat_history")
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "atoll", "chat_history")
	}
	return ""
}
