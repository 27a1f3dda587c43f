package executor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// memoryLog keeps one log.
type memoryLog struct {
	events []execution.Event
	behind int64 // how many events are not stored yet
	fail   error
}

func (l *memoryLog) Append(_ string, events []execution.Event) error {
	for _, e := range events {
		e.Data = bytes.Clone(e.Data)
		l.events = append(l.events, e)
	}
	return l.fail
}
func (l *memoryLog) Stored(string) int64 { return max(1, int64(len(l.events))+1-l.behind) }
func (l *memoryLog) Last(context.Context, string) (int64, error) {
	return int64(len(l.events)) + 1, nil
}
func (l *memoryLog) Finish(context.Context, execution.Result) error { return nil }

func (l *memoryLog) text() string {
	var b strings.Builder
	for _, e := range l.events {
		b.Write(e.Data)
	}
	return b.String()
}

func testExecutor(t testing.TB, l Writer) *Executor {
	t.Helper()
	x, err := New(Config{Writer: l, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.retries.Close)
	return x
}

func testJob() execution.Job {
	return execution.Job{TraceID: "trc_1", Code: "print(1)", StoreOutput: 1 << 30, MaxOutput: 10 << 20, Secrets: []string{"hunter2x"}, Redact: allRules()}
}

func allRules() (names []string) {
	for _, r := range redact.Rules {
		names = append(names, r.Name)
	}
	return names
}

// begin is the output of a run whose journal is in folder.
func begin(t testing.TB, x *Executor, job *execution.Job, folder string) *output {
	t.Helper()
	o, err := x.newOutput(job, folder, func() { t.Error("the output broke down") })
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJournal(folder, jobRecord{Job: *job, Run: 1})
	if err != nil {
		t.Fatal(err)
	}
	o.start(j)
	return o
}

// resume is the same in a later process.
func resume(t testing.TB, x *Executor, folder string, l *memoryLog) *output {
	t.Helper()
	j, rec, _, err := openJournal(folder)
	if err != nil {
		t.Fatal(err)
	}
	o, err := x.newOutput(&rec.Job, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, _ := l.Last(t.Context(), "")
	if _, err := o.replay(j, stored); err != nil {
		t.Fatal(err)
	}
	o.start(j)
	return o
}

// A run's processes are killed at every step, some events on their way and a
// record half written.
func TestOutputGoesOnAfterEveryFrame(t *testing.T) {
	var input []byte
	for i := range 400 {
		input = append(input, strings.Repeat("é", i%40)+" hunter2x "+strings.Repeat("\n", i%3)...)
	}
	want := strings.ReplaceAll(string(input), "hunter2x", redact.Marker)
	for _, size := range []int{1, 7, 100, 4000} {
		l := &memoryLog{}
		x, job, folder := testExecutor(t, l), testJob(), t.TempDir()
		o := begin(t, x, &job, folder)
		for i, rest := 0, input; len(rest) > 0; i++ {
			n := min(size, len(rest))
			o.write(execution.Stdout, rest[:n])
			rest = rest[n:]
			if i%max(5, len(input)/size/40) != 0 {
				continue
			}
			l.events = l.events[:max(0, len(l.events)-i%7)]
			_, _ = o.journal.file.WriteAt([]byte("o\xff\x00"), o.journal.size)
			o.close()
			o = resume(t, x, folder, l)
			if got := o.raw[0]; got != int64(len(input)-len(rest)) {
				t.Fatalf("%d bytes are known of %d", got, len(input)-len(rest))
			}
		}
		r := execution.Result{StdoutBytes: int64(len(input))}
		o.finish(t.Context(), nil, &job, &r)
		o.close()
		if l.text() != want || string(r.Stdout) != want || r.StdoutTruncated {
			t.Errorf("in pieces of %d the log has %q, the answer %q", size, l.text(), r.Stdout)
		}
	}
}

func TestJournalsAreCut(t *testing.T) {
	l := &memoryLog{behind: 2000}
	x, job, folder := testExecutor(t, l), testJob(), t.TempDir()
	// The job's own record, which stays, is longer than cutAt by its files.
	job.Input.Files = map[string][]byte{"data": bytes.Repeat([]byte{'d'}, cutAt)}
	o := begin(t, x, &job, folder)
	head := int64(len(o.journal.head))
	line := []byte(strings.Repeat("x", 999) + "\nhead of a line") // so that there is always something pending
	largest := int64(0)
	for i := range 20_000 {
		o.write(execution.Stdout, line)
		largest = max(largest, o.journal.size)
		if i%3000 == 2999 {
			l.events = l.events[:len(l.events)-500] // fewer than are said to be on their way
			o.close()
			o = resume(t, x, folder, l)
		}
	}
	var r execution.Result
	uploaded := memoryBlobs{}
	o.finish(t.Context(), uploaded, &job, &r)
	o.close()
	want := strings.Repeat(string(line), 20_000)
	if l.text() != want || !r.Stored || uploaded[execution.OutputName("", "trc_1", execution.Stdout)] != want || r.Kept != int64(len(want)) {
		t.Errorf("the log has %d bytes of %d; stored is %v", len(l.text()), len(want), r.Stored)
	}
	if largest -= head; largest > 3*cutAt {
		t.Errorf("the journal was %d bytes long besides its job", largest)
	}
	if cuts := testutil.ToFloat64(x.metrics.cuts); cuts == 0 || cuts > float64(len(want)/cutAt) {
		t.Errorf("the journal of %d bytes of output was cut %v times", len(want), cuts)
	}
}

type memoryBlobs map[string]string

func (m memoryBlobs) Put(_ context.Context, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	m[name] = string(data)
	return err
}

type brokenBlobs struct{}

func (brokenBlobs) Put(context.Context, string, io.Reader) error { return errors.New("no room") }

func TestWhatCannotBeStoredIsCut(t *testing.T) {
	x, job := testExecutor(t, &memoryLog{}), testJob()
	o := begin(t, x, &job, t.TempDir())
	for range 100 {
		o.write(execution.Stdout, bytes.Repeat([]byte{'x'}, 1000))
	}
	o.write(execution.Stderr, []byte("short"))
	r := execution.Result{StdoutBytes: 100_000, StderrBytes: 5}
	o.finish(t.Context(), brokenBlobs{}, &job, &r)
	o.close()
	if r.Stored || len(r.Stdout) < 60_000 || !r.StdoutTruncated || r.Kept != int64(len(r.Stdout)+len(r.Stderr)) {
		t.Errorf("stored %v, %d bytes, truncated %v, %d kept", r.Stored, len(r.Stdout), r.StdoutTruncated, r.Kept)
	}
}

func TestALyingGuestIsCutAtTheLimit(t *testing.T) {
	l := &memoryLog{}
	x, job := testExecutor(t, l), testJob()
	job.StoreOutput, job.MaxOutput = 10, 4
	o := begin(t, x, &job, t.TempDir())
	for range 5 {
		o.write(execution.Stderr, []byte("line\n"))
	}
	r := execution.Result{StderrBytes: 25, Files: execution.OutputFiles{Files: []execution.OutputFile{{Name: "a", Bytes: 7}, {Name: "b", Bytes: 2}}}}
	o.finish(t.Context(), nil, &job, &r)
	o.close()
	if l.text() != "line\nline\n" || string(r.Stderr) != "line" || !r.StderrTruncated || r.Kept != 4+7+2 {
		t.Errorf("the log has %q, the answer %q, %d bytes are kept", l.text(), r.Stderr, r.Kept)
	}
}

func TestSilentLogsAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &memoryLog{}
		x, job := testExecutor(t, l), testJob()
		folder := t.TempDir()
		o := begin(t, x, &job, folder)
		time.Sleep(10 * time.Second)
		o.write(execution.Stdout, []byte("one\n"))
		time.Sleep(46 * time.Second)
		synctest.Wait()
		var streams []execution.Stream
		for _, e := range l.events {
			streams = append(streams, e.Stream)
		}
		if want := []execution.Stream{execution.Stdout, "", "", ""}; !slices.Equal(streams, want) {
			t.Errorf("after 56 s the log has %q", streams)
		}
		o.close()
		o = resume(t, x, folder, l)
		o.write(execution.Stdout, []byte("two\n"))
		o.close()
		if n := len(l.events); n != 5 || l.events[4].Seq != 6 {
			t.Errorf("after the take-over the log has %+v", l.events)
		}
	})
}

// TestPartialLines: where the job asks for it, a line that the program pauses in is sent, also
// by a process that takes over, which counts the events in the same way.
func TestPartialLines(t *testing.T) {
	for _, partial := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &memoryLog{}
			x, job := testExecutor(t, l), testJob()
			job.Partial = partial
			folder := t.TempDir()
			o := begin(t, x, &job, folder)
			say := func(text string, then time.Duration) {
				o.write(execution.Stdout, []byte(text))
				time.Sleep(then)
				synctest.Wait()
			}
			say("whole\n10 %\r", 50*time.Millisecond)
			say("20 %\r", time.Second)
			say("a caf\xc3", time.Second)    // the beginning of a character waits
			say("\xa9, hunter", time.Second) // so does what may be a secret
			o.close()
			o = resume(t, x, folder, l)
			say("2x? ", time.Second)
			say("end\n", 0)
			o.close()
			var got []string
			for i, e := range l.events {
				if e.Seq != int64(i)+2 {
					t.Errorf("the event %d has the seq %d", i, e.Seq)
				}
				got = append(got, string(e.Data))
			}
			want := []string{"whole\n", "10 %\r20 %\ra café, " + redact.Marker + "? end\n"}
			if partial {
				want = []string{"whole\n", "10 %\r20 %\r", "a caf", "é, ", redact.Marker + "? ", "end\n"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("partial %t: %q, want %q", partial, got, want)
			}
		})
	}
}

// BenchmarkOutput is what a tiny program's output costs, its journal and the
// end of it included.
func BenchmarkOutput(b *testing.B) {
	x, job := testExecutor(b, &memoryLog{}), testJob()
	job.Secrets = nil
	folder := b.TempDir()
	if err := Prepare(folder); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		o := begin(b, x, &job, folder)
		o.write(execution.Stdout, []byte("1\n"))
		var r execution.Result
		_ = o.journal.end(endRecord{})
		o.finish(b.Context(), nil, &job, &r)
		_ = o.journal.clear()
		o.close()
	}
}

// BenchmarkBulk is the way of long output, in bytes a second.
func BenchmarkBulk(b *testing.B) {
	l := &discardLog{}
	x, job := testExecutor(b, l), testJob()
	job.StoreOutput = 1 << 60
	o := begin(b, x, &job, b.TempDir())
	frame := bytes.Repeat([]byte(strings.Repeat("x", 1023)+"\n"), 64)
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		o.write(execution.Stdout, frame)
	}
	if info, err := os.Stat(o.journal.path); err != nil || info.Size() > 2*cutAt {
		b.Error("the journal has", info.Size(), err)
	}
	o.close()
}

type discardLog struct{ last int64 }

func (l *discardLog) Append(_ string, events []execution.Event) error {
	l.last = events[len(events)-1].Seq
	return nil
}
func (l *discardLog) Stored(string) int64                            { return l.last }
func (l *discardLog) Last(context.Context, string) (int64, error)    { return l.last, nil }
func (l *discardLog) Finish(context.Context, execution.Result) error { return nil }
