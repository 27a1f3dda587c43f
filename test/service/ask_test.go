package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
)

// asker runs 'atoll ask', and other commands that ask, as a user with a home of its own.
type asker struct {
	t    *testing.T
	dir  string // where the commands run
	env  []string
	last string // what was said on stderr

	first string // the command
}

func newAsker(t *testing.T, url, key string) *asker {
	t.Helper()
	a := &asker{t: t, dir: t.TempDir(), first: "ask"}
	a.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ATOLL_BASE_URL=" + url, "ATOLL_API_KEY=" + key}
	return a
}

func (a *asker) command(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	a.t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		a.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{a.first}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = a.dir, a.env, strings.NewReader(stdin)
	return cmd
}

// ask returns what was said on stdout; the exit code must be as wanted.
func (a *asker) ask(code int, stdin string, args ...string) string {
	a.t.Helper()
	var out, errs bytes.Buffer
	cmd := a.command(a.t.Context(), stdin, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || code == 0 && err != nil || code != 0 && (!ok || exited.ExitCode() != code) {
		a.t.Fatalf("%s %q: %v, want exit code %d\n%s%s", a.first, args, err, code, out.String(), errs.String())
	}
	a.last = errs.String()
	return out.String()
}

// told fails unless stderr had all of these.
func (a *asker) told(parts ...string) {
	a.t.Helper()
	for _, part := range parts {
		if !strings.Contains(a.last, part) {
			a.t.Errorf("stderr lacks %q:\n%s", part, a.last)
		}
	}
}

// TestAsk asks from the command line: text comes on stdout, what the model does on stderr.
func TestAsk(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "asker", "pro")
	lendModel(t, s, "clever", clever(t).URL, model.Capabilities...)
	a := newAsker(t, s.URL, key)
	if out := a.ask(0, "", "say", "hello there"); out != "hello there\n" {
		t.Errorf("got %q", out)
	}
	a.told("10 tokens in, 5 out")

	if err := os.WriteFile(filepath.Join(a.dir, "in.csv"), []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := "import sys\nprint(open('data.csv').read().upper())\nopen('data.csv', 'w').write('changed')\nprint('\\x1b[31mred')\nprint('\\n'.join(str(i) for i in range(100)))"
	out := a.ask(0, "", "--file", "in.csv:data.csv", "run "+program)
	if !strings.Contains(out, "A,B") {
		t.Errorf("got %q", out)
	}
	a.told("- python:\n    import sys\n", "  A,B\n", "… 84 lines …", "  99\n", "[exit code 0, ", "\uFFFD[31mred")
	if strings.Contains(a.last, "\x1b") {
		t.Errorf("a program moves the cursor: %q", a.last)
	}
	// The next answer has the same sandbox, whose file stays as the model left it.
	if out := a.ask(0, "run print(open('data.csv').read())", "--continue"); !strings.Contains(out, "changed") {
		t.Errorf("got %q", out)
	}
	if out := a.ask(0, "", "--continue", "--tool", "none", "say goodbye"); out != "goodbye\n" {
		t.Errorf("got %q", out)
	}
	t.Cleanup(func() { endContainers(t, s, key) })
	if out := a.ask(0, "", "--tool", "code_interpreter", "--file", "in.csv", "compute print(open('in.csv').read().upper())"); !strings.Contains(out, "A,B") {
		t.Errorf("got %q", out)
	}
	a.told("- python: print(open('in.csv')", "\n  A,B\n  1,2\n")
	a.ask(0, "", "run raise SystemExit(3)")
	a.told("- python: raise SystemExit(3)\n  [exit code 3, ")
	if out := a.ask(0, "with text\n", "say", "given"); out != "given\n\nwith text\n" {
		t.Errorf("got %q", out)
	}

	var response struct {
		ID, Status string
		Output     []struct{ Type string }
	}
	if err := json.Unmarshal([]byte(a.ask(0, "", "--json", "--tool", "none", "say hello")), &response); err != nil || response.Status != "completed" || len(response.Output) != 1 {
		t.Errorf("%+v, %v", response, err)
	}
	if out := a.ask(0, "", "--previous", response.ID, "recall"); out != "user: say hello; assistant: hello; user: recall\n" {
		t.Errorf("got %q", out)
	}

	a.ask(1, "", "--model", "none", "x")
	a.told(`there is no model "none"`)
	a.ask(1, "", "--max-steps", "1", "run print(1)")
	a.told("the response is incomplete (max_steps)")
	a.ask(2, "")
	a.told("want a question")
	a.ask(2, "", "--continue", "--previous", response.ID, "x")
	a.ask(1, "", "--file", "absent", "x")
	a.told("absent")
	a.ask(1, "", "--tool", "no_such_tool", "x")
	a.told("no_such_tool")
}

// TestAskInterrupted: Ctrl-C ends the response on the server.
func TestAskInterrupted(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "interrupter", "pro")
	lendModel(t, s, "clever", clever(t).URL, model.Capabilities...)
	r, at := recorded(t, s.URL)
	a := newAsker(t, at, key)
	var errs bytes.Buffer
	cmd := a.command(t.Context(), "", "--tool", "none", "slow")
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || err.ExitCode() != 130 || !strings.Contains(errs.String(), "cancelled") {
		t.Errorf("%v: %s", err, errs.String())
	}
	r.wants("stream", "POST/cancel")
}
