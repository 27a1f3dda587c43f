package rig

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Program is code with what it must write to stdout.
type Program struct {
	Language execution.Language
	Code     string
	Want     string // "" accepts anything but nothing
}

func (p Program) check(stdout string) error {
	if p.Want == "" && stdout != "" || p.Want != "" && stdout == p.Want {
		return nil
	}
	return fmt.Errorf("%s wrote %q instead of %q", p.Language, stdout, p.Want)
}

// inline is how each interpreter takes code on its command line.
var inline = map[execution.Language]string{execution.Python: "-c", execution.Node: "-e", execution.Bash: "-c"}

func (r *Rig) argv(p Program) []string {
	return []string{r.Image.Interpreter(p.Language), inline[p.Language], p.Code}
}

func (r *Rig) env() []string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	maps.Copy(env, r.Image.Env)
	env["HOME"] = "/home/user"
	var list []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// Unsandboxed is the command that runs a program with the image's interpreter, on
// the machine's own kernel.
func (r *Rig) Unsandboxed(ctx context.Context, p Program) *exec.Cmd {
	argv := r.argv(p)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Err = nil // whether it exists is for the chroot to say
	cmd.Path = argv[0]
	cmd.Dir, cmd.Env = "/", r.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.Bare}
	return cmd
}

// RunBare runs a program unsandboxed, and returns the time from fork to the end
// of its output and its exit.
func (r *Rig) RunBare(ctx context.Context, p Program) (time.Duration, error) {
	return timed(r.Unsandboxed(ctx, p), p)
}

// RunscDo runs a program with 'runsc do', a fresh kernel from nothing each
// time, with its own defaults.
func (r *Rig) RunscDo(ctx context.Context, runsc string, p Program) (time.Duration, error) {
	args := append([]string{"--root=" + filepath.Join(r.temp, "runsc"), "--network=none", "do", "-erofs", r.Image.File}, r.argv(p)...)
	cmd := exec.CommandContext(ctx, runsc, args...)
	cmd.Dir, cmd.Env = "/", r.env()
	return timed(cmd, p)
}

// Runsc is Atoll's build of runsc.
func (r *Rig) Runsc() string { return filepath.Join(r.Bin, "atoll-runsc") }

func timed(cmd *exec.Cmd, p Program) (time.Duration, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, tail(strings.TrimSpace(stderr.String())))
	}
	return took, p.check(stdout.String())
}
