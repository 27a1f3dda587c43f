package runtimetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/cgroup"
)

// patience bounds everything that is waited for.
const patience = 30 * time.Second

// Limits are what the suite's sandboxes get: small, so that they are soon met.
func Limits() runtime.Limits {
	const MiB = 1 << 20
	return runtime.Limits{
		CPU: 1, Memory: 128 * MiB, Processes: 48, OpenFiles: 64,
		Root: 16 * MiB, Tmp: 12 * MiB, Shm: 8 * MiB, Inodes: 500,
	}
}

// fixture is one part's runtime on a state folder of its own.
type fixture struct {
	Driver
	state   string
	groups  *cgroup.Parent
	runtime Runtime
}

func newFixture(t *testing.T, d Driver) *fixture {
	f := &fixture{Driver: d, state: filepath.Join(t.TempDir(), "state")}
	if !d.NoCgroups {
		f.groups = openGroups(t, f.state)
		t.Cleanup(func() {
			if err := f.groups.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	d.Rootfs(t) // built before descriptors are counted
	before := descriptors(t)
	f.runtime = d.Open(t, f.state, f.groups)
	t.Cleanup(func() {
		if err := f.runtime.Close(); err != nil {
			t.Error(err)
		}
		f.checkClosed(t)
		checkDescriptors(t, before)
	})
	t.Cleanup(func() { f.checkEmpty(t) })
	return f
}

func openGroups(t testing.TB, state string) *cgroup.Parent {
	t.Helper()
	groups, err := cgroup.Open(groupName(state))
	must(t, err)
	return groups
}

// rootTest is the name of the test that runs the suite.
func rootTest(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// reopen closes the runtime and opens another on the same folder, as a new
// process would.
func (f *fixture) reopen(t *testing.T) {
	t.Helper()
	must(t, f.runtime.Close())
	f.runtime = f.Open(t, f.state, f.groups)
}

// spec is that of a sandbox with the suite's limits.
func (f *fixture) spec(t testing.TB) runtime.Spec {
	return runtime.Spec{
		ID: runtime.NewID(), Rootfs: f.Rootfs(t), Limits: Limits(), Labels: map[string]string{"test": t.Name()},
	}
}

// box is a sandbox with a conversation.
type box struct {
	runtime.Instance
	guest *initclient.Client
}

// create makes a sandbox, which is destroyed with the test.
func (f *fixture) create(t *testing.T, change ...func(*runtime.Spec)) *box {
	t.Helper()
	spec := f.spec(t)
	for _, c := range change {
		c(&spec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	inst, err := f.runtime.Create(ctx, spec)
	must(t, err)
	return f.adopt(t, inst)
}

// adopt dials the guest of an instance, which is destroyed with the test.
func (f *fixture) adopt(t *testing.T, inst runtime.Instance) *box {
	t.Helper()
	b := &box{Instance: inst}
	t.Cleanup(func() {
		if b.guest != nil {
			b.guest.Close()
		}
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	b.guest, err = initclient.Dial(ctx, inst.Channel())
	must(t, err)
	return b
}

// output gathers what a program says, and tells when it has said a line.
type output struct {
	mu    sync.Mutex
	data  [2]bytes.Buffer
	lines chan struct{} // has room for one; filled at every end of a line on stdout
}

func newOutput() *output { return &output{lines: make(chan struct{}, 1)} }

func (o *output) sink(s initclient.Stream, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data[s&1].Write(p)
	if s == initclient.Stdout && bytes.IndexByte(p, '\n') >= 0 {
		select {
		case o.lines <- struct{}{}:
		default:
		}
	}
}

func (o *output) String() string { return o.stream(initclient.Stdout) }

func (o *output) stream(s initclient.Stream) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data[s&1].String()
}

// program is the run of a command of the suite's program.
func program(l runtime.Limits, args ...string) initclient.RunSpec {
	return initclient.RunSpec{
		ID: initclient.NewRunID(),
		Command: initclient.Command{
			Path: Probe, Argv: append([]string{"probe"}, args...), Dir: runtime.Home, Env: []string{"HOME=" + runtime.Home},
			Limits: initclient.Limits{Processes: l.Processes, OpenFiles: l.OpenFiles},
		},
		Timeout: patience, OutputLimit: 1 << 20,
	}
}

// try runs a command of the suite's program.
func (b *box) try(t testing.TB, args ...string) (initclient.Result, *output) {
	t.Helper()
	out := newOutput()
	ctx, cancel := context.WithTimeout(t.Context(), patience+5*time.Second) // the guest's own comes first
	defer cancel()
	res, err := b.guest.Run(b.whileAlive(ctx), program(Limits(), args...), out.sink)
	if err != nil || res.TimedOut {
		t.Fatalf("probe %q: %+v, %v: %s", args, res, err, out)
	}
	return res, out
}

// errEnded is why something is no longer waited for.
var errEnded = errors.New("the sandbox ended")

// whileAlive returns a context that ends with the sandbox, too.
func (b *box) whileAlive(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with the sandbox, or with the test
		select {
		case <-b.Done():
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return ctx
}

// run is try for a command that must succeed.
func (b *box) run(t testing.TB, args ...string) string {
	t.Helper()
	res, out := b.try(t, args...)
	if res.ExitCode != 0 {
		t.Fatalf("probe %q exited with %d: %s", args, res.ExitCode, out.stream(initclient.Stderr))
	}
	return out.String()
}

// ask runs a command and decodes the JSON that it prints into v.
func (b *box) ask(t testing.TB, v any, args ...string) {
	t.Helper()
	if out := b.run(t, args...); json.Unmarshal([]byte(out), v) != nil {
		t.Fatalf("probe %q printed %q", args, out)
	}
}

// running is a run that goes on beside the test.
type running struct {
	id     initclient.RunID
	out    *output
	cancel context.CancelFunc // ends the wait for it, not the run
	end    chan ending        // one is sent
}

type ending struct {
	initclient.Result
	err error
}

// start begins a command and returns when it has printed a line.
func (b *box) start(t testing.TB, l runtime.Limits, args ...string) *running {
	t.Helper()
	spec := program(l, args...)
	ctx, cancel := context.WithCancel(b.whileAlive(t.Context()))
	r := &running{id: spec.ID, out: newOutput(), cancel: cancel, end: make(chan ending, 1)}
	go func() {
		res, err := b.guest.Run(ctx, spec, r.out.sink)
		r.end <- ending{res, err}
	}()
	return r
}

// line waits until the run has printed a line.
func (r *running) line(t testing.TB) {
	t.Helper()
	select {
	case <-r.out.lines:
	case e := <-r.end:
		t.Fatalf("the program ended early: %+v: %s", e, r.out.stream(initclient.Stderr))
	case <-time.After(patience):
		t.Fatal("the program said nothing")
	}
}

// wait waits until the run has ended.
func (r *running) wait(t testing.TB) ending {
	t.Helper()
	select {
	case e := <-r.end:
		return e
	case <-time.After(patience):
		t.Fatal("the program did not end")
		return ending{}
	}
}

// await waits for a channel to be closed.
func await(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
	}
}
