package engine

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/warm"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start opens an engine on a folder, which the end of the test closes.
func start(t *testing.T, dir string, change func(*Config)) *Engine {
	t.Helper()
	e := open(t, dir, change)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func open(t *testing.T, dir string, change func(*Config)) *Engine {
	t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	img, err := atolltest.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	store, err := image.Open(filepath.Dir(img))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(binary)
	cfg := Config{
		Platform: Platform{
			Runsc: filepath.Join(bin, "atoll-runsc"), Guest: filepath.Join(bin, "atoll-guest"),
			State: config.DefaultStateDir(dir), Disk: filepath.Join(dir, "state"), Name: Server, Log: slog.New(slog.DiscardHandler),
		},
		Images: store, Image: atolltest.Image, Limits: runtime.DefaultLimits(), Journals: true, Registry: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&cfg)
	}
	e, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll-engine-") // t.TempDir is closed to the sandbox's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func job(change func(*execution.Job)) *execution.Job {
	j := &execution.Job{Language: execution.Bash, Code: "echo $NAME", Image: atolltest.Image, Limits: runtime.DefaultLimits()}
	if change != nil {
		change(j)
	}
	return j
}

// run claims a sandbox for a job, runs it there and returns what it printed.
func run(t *testing.T, e *Engine, j *execution.Job) (out string, warm bool) {
	t.Helper()
	c, start, err := e.Claim(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, c, j), start.Start() == execution.StartWarm
}

// finish runs a job in a sandbox that was claimed for it, ends that, and returns what the
// job printed.
func finish(t *testing.T, c executor.Claimed, j *execution.Job) string {
	t.Helper()
	defer func() {
		if err := c.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(c.Folder(), "journal")); err != nil || st.Size() > 0 {
		t.Errorf("a new sandbox has no empty journal: %v", err)
	}
	var b strings.Builder
	_, err := c.Run(t.Context(), execution.Program{ID: 1, Language: j.Language, Code: j.Code, Timeout: time.Minute, MaxBytes: 1000},
		func(_ execution.Stream, p []byte) { b.Write(p) })
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryJobGetsItsEnvironment(t *testing.T) {
	e := start(t, folder(t), func(c *Config) { c.PoolSize, c.Env = 1, map[string]string{"NAME": "usual"} })
	usual := job(func(j *execution.Job) { j.BaseEnv = map[string]string{"NAME": "usual"} })
	atolltest.Until(t, time.Minute, "the engine is ready", func() bool { return e.Ready(t.Context()) == nil })
	if out, warm := run(t, e, usual); out != "usual\n" || !warm {
		t.Errorf("the configured environment printed %q; warm is %v", out, warm)
	}
	other := job(func(j *execution.Job) {
		j.BaseEnv = map[string]string{"NAME": "other"}
		j.Limits.Memory, j.Limits.Processes = 400<<20, 20
	})
	if out, warm := run(t, e, other); out != "other\n" || warm {
		t.Errorf("another environment printed %q; warm is %v", out, warm)
	}
	proxied := *other
	proxied.BaseEnv = map[string]string{"NAME": "other", "HTTP_PROXY": "http://192.0.2.1:3128"}
	proxied.Code = "echo $http_proxy $PIP_RETRIES; getent hosts example.com || echo unknown"
	if out, _ := run(t, e, &proxied); out != "http://192.0.2.1:3128 0\nunknown\n" {
		t.Errorf("a program without a network printed %q", out)
	}
	// From then on there is one ready. Looking takes none, so that one can be made ahead.
	env, _, err := e.use(other)
	if err != nil {
		t.Fatal(err)
	}
	key := env.maker.Key(other.Language, other.Code, false, false)
	e.unuse(env)
	atolltest.Until(t, time.Minute, "another environment's sandbox is ready", func() bool {
		e.metrics.mu.Lock()
		defer e.metrics.mu.Unlock()
		return e.metrics.sizes[key].idle > 0
	})
	if out, warm := run(t, e, other); out != "other\n" || !warm {
		t.Errorf("another environment printed %q the second time; warm is %v", out, warm)
	}
}

// TestExpectedJobsFindSandboxes expects what a later claim is for, and what no claim can
// be for.
func TestExpectedJobsFindSandboxes(t *testing.T) {
	e := start(t, folder(t), func(c *Config) { c.PoolSize = 1 })
	if err := e.AwaitFull(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.Ready(t.Context()) != nil {
		t.Error("the engine is not ready, with all sandboxes of the configured environment")
	}
	other := job(func(j *execution.Job) { j.BaseEnv = map[string]string{"NAME": "other"} })
	if n, err := e.Expect(t.Context(), other, time.Now()); n != 1 || err != nil {
		t.Errorf("%d sandboxes are expected: %v", n, err)
	}
	missing := job(func(j *execution.Job) { j.Image = "missing" })
	if n, err := e.Expect(t.Context(), missing, time.Now()); n != 0 || fault.KindOf(err) != fault.Invalid {
		t.Errorf("%d sandboxes of an image that is not there are expected: %v", n, err)
	}
	key := warm.Key{Image: atolltest.Image, Variant: e.keyOf(other).variant, Language: other.Language}
	atolltest.Until(t, time.Minute, "the expected sandbox is ready", func() bool {
		e.metrics.mu.Lock()
		defer e.metrics.mu.Unlock()
		return e.metrics.sizes[key].idle > 0
	})
	if out, warm := run(t, e, other); out != "other\n" || !warm {
		t.Errorf("the expected job printed %q; warm is %v", out, warm)
	}
	e.cfg.PoolSize = 0
	if n, err := e.Expect(t.Context(), other, time.Now()); n != 0 || err != nil {
		t.Errorf("%d sandboxes are expected with the pool off: %v", n, err)
	}
}

// TestSizesAreCountedByLabel checks a figure that kinds of several environments share.
func TestSizesAreCountedByLabel(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	kind := warm.Key{Image: "default", Language: execution.Bash}
	other, home := kind, kind
	other.Variant, home.Home = "other", true
	m.Sized(kind, 2, 3)
	m.Sized(other, 1, 4)
	m.Sized(home, 0, 0) // as of a kind that is known, and not in demand
	for name, want := range map[string]float64{"atoll_pool_idle": 3, "atoll_pool_target": 7} {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, f := range families {
			if f.GetName() == name {
				for _, one := range f.GetMetric() {
					got = append(got, one.GetGauge().GetValue())
				}
			}
		}
		if !slices.Equal(got, []float64{want}) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestEnvironmentsAreBounded(t *testing.T) {
	e := start(t, folder(t), func(c *Config) { c.Environments = 2 })
	for i := range 5 {
		name := string(rune('a' + i))
		j := job(func(j *execution.Job) { j.BaseEnv = map[string]string{"NAME": name} })
		if out, _ := run(t, e, j); out != name+"\n" {
			t.Errorf("environment %s printed %q", name, out)
		}
	}
	e.mu.Lock()
	n := len(e.envs)
	e.mu.Unlock()
	if n != 3 { // the configured one and two others
		t.Errorf("%d environments are kept", n)
	}
}

func TestWhatCannotBeHeldIsRefused(t *testing.T) {
	e := start(t, folder(t), nil)
	for what, change := range map[string]func(*execution.Job){
		"atoll image import": func(j *execution.Job) { j.Image = "nowhere" },
		"not allowed":        func(j *execution.Job) { j.Image = "../default" },
		"at least 64 MiB":    func(j *execution.Job) { j.Limits.Memory = 1 << 20 },
		"has no interpreter for perl (it has: Python, Node.js, Bash)": func(j *execution.Job) { j.Language = "perl" },
		"must be positive":     func(j *execution.Job) { j.Limits.CPU = 0 },
		"below the memory lim": func(j *execution.Job) { j.Limits.Tmp = 1 << 40 },
	} {
		_, _, err := e.Claim(t.Context(), job(change))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want a refusal with %q", err, what)
		}
	}
}

func TestASandboxWithoutItsLimitsIsUnfit(t *testing.T) {
	e := start(t, folder(t), nil)
	c, _, err := e.Claim(t.Context(), job(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Destroy(context.Background())
	id := filepath.Base(c.Folder())
	groups, err := filepath.Glob("/sys/fs/cgroup/*/*/" + id + "/pids.max")
	more, _ := filepath.Glob("/sys/fs/cgroup/*/" + id + "/pids.max")
	if groups = append(groups, more...); err != nil || len(groups) == 0 {
		t.Fatal("the sandbox's control group is not found")
	}
	if err := os.WriteFile(groups[0], []byte("max"), 0); err != nil {
		t.Fatal(err)
	}
	env, _, err := e.use(job(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer e.unuse(env)
	if err := c.Detach(); err != nil {
		t.Fatal(err)
	}
	again, err := e.Open(t.Context(), c.Folder(), job(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Check(); err == nil || !strings.Contains(err.Error(), "pids.max") {
		t.Error("a sandbox without a limit of processes:", err)
	}
	if err := again.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// abandon closes e as if its server had died, with two sandboxes of which the first has a run.
func abandon(t *testing.T, e *Engine, j *execution.Job) (folders []string) {
	t.Helper()
	for range 2 {
		c, _, err := e.Claim(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, c.Folder())
		if err := c.Detach(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folders[0], "journal"), []byte("j"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return folders
}

func TestSweepSparesOnlyWhatCanBeTakenOver(t *testing.T) {
	dir := folder(t)
	e := open(t, dir, nil)
	folders := abandon(t, e, job(nil))
	// A command beside the dead server spares it, too.
	cmd := open(t, dir, func(c *Config) { c.Name, c.Journals = NewName(), false })
	if !executor.HasJob(folders[0]) {
		t.Fatal("a command swept a server's run")
	}
	if err := cmd.Close(); err != nil {
		t.Fatal(err)
	}
	next := start(t, dir, nil)
	left, err := next.Left(t.Context())
	if err != nil || len(left) != 1 || left[0] != folders[0] {
		t.Errorf("left is %v: %v", left, err)
	}
	if _, err := os.Stat(folders[1]); err == nil {
		t.Error("a sandbox without a run was spared")
	}
	if err := next.Remove(t.Context(), folders[0]); err != nil {
		t.Error(err)
	}
}
