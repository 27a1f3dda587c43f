package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/image"
)

// upperWriter is a sandbox that tells what it has above its image.
type upperWriter interface {
	WriteUpper(ctx context.Context, f *os.File) error
}

// Installation says what to run above an image, one program after the other.
type Installation struct {
	Image     *image.Image
	Limits    runtime.Limits
	Variables map[string]string
	Programs  [][]string // absolute paths with their arguments; no shell reads them
	Timeout   time.Duration
	Output    io.Writer // gets what they write
	MaxUpper  int64     // bytes of the tar stream of what they leave
}

// ProgramError is a program of an installation that has failed.
type ProgramError struct{ Reason string }

func (e *ProgramError) Error() string { return e.Reason }

// maxInstallOutput bounds what the programs of an installation may write, each stream of each.
const maxInstallOutput = 64 << 20

// Install runs programs as root of a sandbox of their own, which reaches the operator's
// package mirrors and nothing else, and writes what they have left above the image to upper,
// as a tar stream. The sandbox is gone when it returns. A program that fails, or takes too
// long, is a *ProgramError.
func (e *Engine) Install(ctx context.Context, in Installation, upper *os.File) (err error) {
	rules := runtime.Permissions{Network: runtime.NetworkPolicy{Mode: runtime.NetworkRules}, Process: runtime.ProcessPolicy{Root: true}}
	for _, check := range []func() error{
		func() error { return e.host.admit(in.Limits) }, func() error { return e.host.admitRules(rules) }, func() error { return e.networks.admit(false) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, in.Timeout, &ProgramError{fmt.Sprintf("it has taken longer than %s (package_time)", in.Timeout)})
	defer cancel()
	defer func() {
		if late, ok := errors.AsType[*ProgramError](context.Cause(ctx)); ok && err != nil {
			err = late
		}
	}()
	t := e.pin()
	defer e.unpin(t)
	inst, err := e.networks.Create(ctx, runtime.Spec{ID: runtime.NewID(), Rootfs: in.Image.Rootfs, Limits: in.Limits, Guest: t.guest, Labels: map[string]string{"packages": in.Image.Name}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Destroy(context.WithoutCancel(ctx))) }()
	if err := e.networks.link(inst.ID()).enforce(rules.Network); err != nil {
		return fmt.Errorf("connect it to the package mirrors: %w", err)
	}
	c, err := initclient.Dial(ctx, inst.Channel())
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Confine(ctx, rules); err != nil {
		return fault.Wrap(fault.Unavailable, err, "programs cannot run as root in a sandbox of this server: "+err.Error())
	}
	for _, argv := range in.Programs {
		if err := e.installWith(ctx, c, in, argv, e.networks.env(in.Variables, t.file(false))); err != nil {
			return err
		}
	}
	w, ok := inst.(upperWriter)
	if !ok {
		return fmt.Errorf("read what a sandbox has above its image: %w", runtime.ErrUnsupported)
	}
	return copyUpper(ctx, w, upper, in.MaxUpper)
}

// copyUpper writes what a sandbox has above its image to a file, up to a bound: a sparse file
// takes no room in the sandbox, and all of its size in the stream.
func copyUpper(ctx context.Context, from upperWriter, to io.Writer, most int64) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	end := func() { _ = r.SetReadDeadline(time.Unix(1, 0)) } // the sandbox's kernel may keep its end open
	defer context.AfterFunc(ctx, end)()
	copied := make(chan error, 1)
	go func() {
		n, err := io.Copy(to, io.LimitReader(r, most+1))
		if n > most {
			err = &ProgramError{fmt.Sprintf("the files of what was installed have more than %s (package_size)", runtime.FormatBytes(most))}
		}
		copied <- errors.Join(err, r.Close()) // so the kernel writes no more
	}()
	err = errors.Join(from.WriteUpper(ctx, w), w.Close())
	if err != nil {
		end()
	}
	late := <-copied
	if err != nil && errors.Is(late, os.ErrDeadlineExceeded) {
		return err
	}
	return errors.Join(late, err)
}

// installWith runs one program of an installation, with variables that override the image's.
func (e *Engine) installWith(ctx context.Context, c *initclient.Client, in Installation, argv []string, ours map[string]string) error {
	env := maps.Clone(in.Image.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, ours)
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	res, err := c.Run(ctx, initclient.RunSpec{
		Command: initclient.Command{
			Path: argv[0], Argv: argv, Dir: "/", Env: process.Guarded.Isolate(list, slices.Collect(maps.Keys(ours))...),
			Limits: initclient.Limits{Processes: in.Limits.Processes, OpenFiles: in.Limits.OpenFiles},
		},
		OutputLimit: maxInstallOutput,
	}, func(_ initclient.Stream, b []byte) { _, _ = in.Output.Write(b) })
	what := strings.Join(argv[:min(len(argv), 3)], " ")
	switch {
	case err != nil && errors.Is(err, initclient.ErrNotStarted):
		return &ProgramError{fmt.Sprintf("%s could not be started: the image has no such program", what)}
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case res.DiskFull:
		return &ProgramError{fmt.Sprintf("%s needs more than %s for what it installs (package_size)", what, runtime.FormatBytes(in.Limits.Root))}
	case res.ExitCode != 0:
		return &ProgramError{fmt.Sprintf("%s exited with %d", what, res.ExitCode)}
	}
	return nil
}

// Installs reports why nothing can be installed above images here; nil if it can.
func (e *Engine) Installs() error {
	if e.host.shared {
		return errors.New("packages are installed with runtime gvisor alone")
	}
	return nil
}

// Resolver finds images that jobs name by reference.
type Resolver interface {
	// Resolve returns the name in the image store of what a job names, and may wait until it
	// is there.
	Resolve(ctx context.Context, name string) (string, error)
	// Extend is Resolve, but prefers an image that also has extras. It may wait until there is one
	// that has those of need.
	Extend(ctx context.Context, name string, extras, need []string) (string, error)
}

// resolved is a job whose image is named as in the store. wait lets a job wait for its extras.
func (e *Engine) resolved(ctx context.Context, job *execution.Job, wait bool) (*execution.Job, error) {
	if e.cfg.Resolver == nil {
		return job, nil
	}
	var name string
	var err error
	switch {
	case len(job.Extras) == 0:
		name, err = e.cfg.Resolver.Resolve(ctx, job.Image)
	case wait:
		name, err = e.cfg.Resolver.Extend(ctx, job.Image, job.Extras, job.NeedExtras)
	default:
		name, err = e.cfg.Resolver.Extend(ctx, job.Image, job.Extras, nil)
	}
	if err != nil || name == job.Image {
		return job, err
	}
	own := *job
	own.Image = name
	return &own, nil
}
