package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/test/atolltest"
)

// childEnv makes the test's binary an executor that is there to be killed.
const childEnv = "ATOLL_TEST_EXECUTOR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// machine is an executor with real sandboxes.
type machine struct {
	*executor.Executor
	engine   *engine.Engine
	homes    *homes
	log      *fileLog
	metrics  *prometheus.Registry
	messages *lockedBuffer
	served   *bus.Executor
}

type options struct {
	concurrency, queue int
	poolSize           int
	turnIdle           time.Duration
	detach             bool
	bus                *bus.Bus       // instead of a fileLog
	blobs              executor.Blobs // nil is a folder
	sandboxes          func(executor.Sandboxes) executor.Sandboxes
}

func open(ctx context.Context, dir string, o options) (_ *machine, err error) {
	binary, err := atolltest.Binary()
	if err != nil {
		return nil, err
	}
	img, err := atolltest.ImageDir()
	if err != nil {
		return nil, err
	}
	store, err := image.Open(filepath.Dir(img))
	if err != nil {
		return nil, err
	}
	m := &machine{log: &fileLog{dir: filepath.Join(dir, "log")}, metrics: prometheus.NewRegistry(), messages: &lockedBuffer{}}
	log := slog.New(slog.NewTextHandler(m.messages, nil))
	bin := filepath.Dir(binary)
	m.engine, err = engine.Open(ctx, engine.Config{
		Platform: engine.Platform{
			Runsc: filepath.Join(bin, "atoll-runsc"), Guest: filepath.Join(bin, "atoll-guest"),
			State: config.DefaultStateDir(dir), Disk: filepath.Join(dir, "state"), Name: engine.Server, Log: log,
		},
		Images: store, Image: atolltest.Image, Limits: runtime.DefaultLimits(), PoolSize: o.poolSize,
		Journals: true, Registry: m.metrics,
	})
	if err != nil {
		return nil, err
	}
	if m.homes, err = openHomes(ctx, dir, log); err != nil {
		return nil, errors.Join(err, m.engine.Close())
	}
	var writer executor.Writer = m.log
	if o.bus != nil {
		writer = o.bus.Log()
	}
	if o.concurrency == 0 {
		o.concurrency = 8
	}
	if o.blobs == nil {
		o.blobs = folder(filepath.Join(dir, "blobs"))
	}
	var sandboxes executor.Sandboxes = m.engine
	if o.sandboxes != nil {
		sandboxes = o.sandboxes(sandboxes)
	}
	m.Executor, err = executor.New(executor.Config{
		Outputs: filepath.Join(dir, "state", engine.Server, "outputs"), Sandboxes: sandboxes, Writer: writer, Blobs: o.blobs, Log: log, Registry: m.metrics,
		Concurrency: o.concurrency, Queue: o.queue, TurnIdle: o.turnIdle, Detach: o.detach,
		Homes: engine.Threads{Cache: m.homes.cache}, HomeFree: 1 << 30,
	})
	if err != nil {
		return nil, errors.Join(err, m.engine.Close())
	}
	if o.bus == nil {
		return m, m.Recover(ctx, nil)
	}
	if m.served, err = o.bus.Serve("machine", m); err != nil {
		return nil, errors.Join(err, m.engine.Close())
	}
	return m, m.Recover(ctx, m.served)
}

var (
	_ bus.Handler       = (*executor.Executor)(nil)
	_ executor.Presence = (*bus.Executor)(nil)
)

func (m *machine) close(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := m.Close(ctx)
	if m.served != nil {
		m.served.Close()
	}
	return errors.Join(err, m.engine.Close(), m.homes.close())
}

// count adds up the values of a counter, or a gauge.
func (m *machine) count(t testing.TB, name string) (sum float64) {
	t.Helper()
	families, err := m.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, v := range f.GetMetric() {
			if f.GetName() == name {
				sum += v.GetCounter().GetValue() + v.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// start opens a machine that the end of the test closes, with all that it has.
func start(t *testing.T, dir string, o options) *machine {
	t.Helper()
	m, err := open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(time.Second); err != nil {
			t.Error(err)
		}
		if left := atolltest.Trace(dir).Sandboxes(); len(left) > 0 && !o.detach {
			t.Errorf("sandboxes are left: %v", left)
		}
		if t.Failed() {
			t.Log(m.messages.String())
		}
	})
	return m
}

// folderFor returns a folder for a machine. What a sandbox's kernel opens must
// be reachable for others, which t.TempDir is not.
func folderFor(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll-executor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func job(code string) execution.Job {
	return execution.Job{
		TraceID: execution.NewTraceID(), Tenant: "ten", Code: code, Language: execution.Python, Timeout: 30 * time.Second,
		Image: atolltest.Image, Limits: runtime.DefaultLimits(), MaxOutput: 10 << 20, StoreOutput: 1 << 30,
	}
}

// run runs a job to its Result.
func (m *machine) run(t *testing.T, j execution.Job) execution.Result {
	t.Helper()
	if err := m.Start(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	return m.result(t, j.TraceID)
}

func (m *machine) result(t *testing.T, traceID string) execution.Result {
	t.Helper()
	r, err := m.log.result(t.Context(), traceID)
	if err != nil {
		t.Fatalf("wait for the result of %s: %v\n%s", traceID, err, m.messages.String())
	}
	return r
}

// fileLog is an execution.LogWriter that outlives its process: one file per
// execution, one line for all events that are appended together.
type fileLog struct {
	dir string

	mu    sync.Mutex
	ended chan struct{}            // guarded by mu; closed and made anew at each Finish of this process
	last  map[string]int64         // guarded by mu; seqs appended by this process
	first map[string]chan struct{} // guarded by mu; closed when this process writes to an execution's log
}

type logLine struct {
	Events []execution.Event
	Result *execution.Result
}

func (l *fileLog) Append(traceID string, events []execution.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := json.Marshal(logLine{Events: events})
	if err != nil {
		return err
	}
	if l.last == nil {
		l.last = map[string]int64{}
	}
	l.last[traceID] = events[len(events)-1].Seq
	return l.add(traceID, b)
}

func (l *fileLog) Stored(traceID string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.last[traceID], 1)
}

func (l *fileLog) add(traceID string, b []byte) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(l.dir, traceID), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Concat([]byte("\n"), b, []byte("\n"))) // a killed process may have begun a line
	select {
	case <-l.begins(traceID):
	default:
		close(l.begins(traceID))
	}
	return errors.Join(err, f.Close())
}

// lines reads a log. What a killed process wrote is there line by line or, of
// its last one, not wholly.
func (l *fileLog) lines(traceID string) ([]logLine, error) {
	data, err := os.ReadFile(filepath.Join(l.dir, traceID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []logLine
	for line := range bytes.Lines(data) {
		var e logLine
		if len(line) > 1 && json.Unmarshal(line, &e) == nil {
			all = append(all, e)
		}
	}
	return all, nil
}

// newest returns the newest line of a log that is as wanted, reading no others
// than those after it: some logs are of a hundred megabytes.
func (l *fileLog) newest(traceID string, wanted func(logLine) bool) (logLine, error) {
	data, err := os.ReadFile(filepath.Join(l.dir, traceID))
	if errors.Is(err, fs.ErrNotExist) {
		return logLine{}, nil
	}
	for len(data) > 0 {
		begin := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
		var e logLine
		if len(data)-begin > 1 && json.Unmarshal(data[begin:], &e) == nil && wanted(e) {
			return e, nil
		}
		data = data[:begin]
	}
	return logLine{}, err
}

func (l *fileLog) Last(_ context.Context, traceID string) (int64, error) {
	e, err := l.newest(traceID, func(e logLine) bool { return len(e.Events) > 0 })
	if n := len(e.Events); n > 0 {
		return e.Events[n-1].Seq, err
	}
	return 1, err
}

// await returns when a log has come to a seq, whichever process writes it: a
// file of another process gives no signal.
func (l *fileLog) await(t *testing.T, traceID string, seq int64) {
	t.Helper()
	atolltest.Until(t, 2*time.Minute, fmt.Sprintf("%s has event %d", traceID, seq), func() bool {
		last, err := l.Last(t.Context(), traceID)
		if err != nil {
			t.Fatal(err)
		}
		return last >= seq
	})
}

// begun is closed when this process writes the first line of a log.
func (l *fileLog) begun(traceID string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begins(traceID)
}

func (l *fileLog) begins(traceID string) chan struct{} {
	if l.first == nil {
		l.first = map[string]chan struct{}{}
	}
	if l.first[traceID] == nil {
		l.first[traceID] = make(chan struct{})
	}
	return l.first[traceID]
}

func (l *fileLog) Finish(_ context.Context, r execution.Result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := json.Marshal(logLine{Result: &r})
	if err != nil {
		return err
	}
	if l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
	return l.add(r.TraceID, b)
}

// result waits for a Result.
func (l *fileLog) result(ctx context.Context, traceID string) (execution.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		l.mu.Lock()
		if l.ended == nil {
			l.ended = make(chan struct{})
		}
		ended := l.ended
		l.mu.Unlock()
		e, err := l.newest(traceID, func(logLine) bool { return true })
		if err != nil {
			return execution.Result{}, err
		}
		if e.Result != nil {
			return *e.Result, nil
		}
		select {
		case <-ctx.Done():
			return execution.Result{}, context.Cause(ctx)
		case <-ended:
		}
	}
}

// check reads a log and fails the test unless it is as a log must be: seqs from
// 2 on without a gap, and one Result at the end. It returns both streams.
func (l *fileLog) check(t *testing.T, traceID string) (stdout, stderr string, r execution.Result) {
	t.Helper()
	lines, err := l.lines(traceID)
	if err != nil {
		t.Fatal(err)
	}
	seq := int64(1)
	results := 0
	var out [2]strings.Builder
	for _, e := range lines {
		if e.Result != nil {
			results++
			r = *e.Result
			continue
		}
		if results > 0 {
			t.Fatalf("%s: %d events after the result", traceID, len(e.Events))
		}
		for _, e := range e.Events {
			if seq++; e.Seq != seq {
				t.Fatalf("%s: event %d where %d follows", traceID, e.Seq, seq)
			}
			switch e.Stream {
			case execution.Stdout:
				out[0].Write(e.Data)
			case execution.Stderr:
				out[1].Write(e.Data)
			}
		}
	}
	if results != 1 {
		t.Fatalf("%s has %d results", traceID, results)
	}
	if r.LastSeq != seq {
		t.Errorf("%s: the result says that event %d was the last, not %d", traceID, r.LastSeq, seq)
	}
	return out[0].String(), out[1].String(), r
}

// folder is a blob store.
type folder string

func (f folder) Put(_ context.Context, name string, r io.Reader) error {
	path := filepath.Join(string(f), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// stuck is a blob store that stores nothing and never returns. A file in its folder
// says of which run it has read a blob.
type stuck string

func (s stuck) Put(_ context.Context, name string, r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(string(s), filepath.Base(filepath.Dir(name))), nil, 0o600); err != nil {
		return err
	}
	select {}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestLocalSaysBothWhatFailedAndThatFilesAreMissing(t *testing.T) {
	m := start(t, folderFor(t), options{})
	j := job("open('made', 'w').write('x')\nimport time; time.sleep(60)")
	l := executor.Local{Executor: m.Executor, Job: j}
	req := execution.Request{TraceID: j.TraceID, Code: j.Code, Language: j.Language, Timeout: time.Second, Input: execution.Input{Outputs: []string{"made"}}}
	e, err := l.ExecuteFiles(t.Context(), req, nil, func(execution.OutputFile, io.Reader) error { return errors.New("no room") })
	if err != nil {
		t.Fatal(err)
	}
	if want := "execution timed out after 1s; the files that the program gives back could not be had: no room"; e.Error != want {
		t.Errorf("the error is %q", e.Error)
	}
}

// local runs a job as atoll run does.
func (m *machine) local(j execution.Job) error {
	l := executor.Local{Executor: m.Executor, Job: j}
	_, err := l.ExecuteFiles(context.Background(), execution.Request{TraceID: j.TraceID, Code: j.Code, Language: j.Language, Timeout: j.Timeout}, nil, nil)
	return err
}
