package executor

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// instant gives sandboxes whose programs end at once.
type instant struct {
	Sandboxes
	folder string
	ran    atomic.Int32
}

func (s *instant) Claim(context.Context, *execution.Job) (Claimed, execution.StartReason, error) {
	return instantSandbox{s: s}, execution.StartPooled, nil
}

type instantSandbox struct {
	Claimed
	s *instant
}

func (c instantSandbox) Check() error                  { return nil }
func (c instantSandbox) Folder() string                { return c.s.folder }
func (c instantSandbox) Destroy(context.Context) error { return nil }
func (c instantSandbox) Run(context.Context, execution.Program, execution.Sink) (execution.Outcome, error) {
	c.s.ran.Add(1)
	return execution.Outcome{}, nil
}

// decisions are Starts that were made before.
type decisions struct {
	execution.StartGuard
	may   bool
	asked atomic.Int32
}

func (d *decisions) Begin(context.Context, string) (bool, error) {
	d.asked.Add(1)
	return d.may, nil
}

func TestALateJobStartsOnlyIfItStillCounts(t *testing.T) {
	for name, c := range map[string]struct {
		startBy         time.Duration // from now by this machine's clock; 0 for none
		voided          bool
		asked, ran      int32
		dropped, result int
	}{
		"on time":                           {startBy: execution.StartTime, voided: true, ran: 1, result: 1},
		"without a deadline":                {voided: true, ran: 1, result: 1},
		"late and wanted":                   {startBy: -time.Minute, asked: 1, ran: 1, result: 1},
		"late and concluded":                {startBy: -time.Minute, voided: true, asked: 1, dropped: 1},
		"late, by a clock that is far back": {startBy: time.Hour, voided: true, asked: 1, dropped: 1},
	} {
		t.Run(name, func(t *testing.T) {
			boxes, starts, log := &instant{folder: t.TempDir()}, &decisions{may: !c.voided}, &finishes{}
			x, err := New(Config{Sandboxes: boxes, Writer: log, Starts: starts, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(x.retries.Close)
			x.open = true
			job := testJob()
			if c.startBy != 0 {
				job.StartBy = time.Now().Add(c.startBy)
			}
			if err := x.Start(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			if err := x.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if asked, ran := starts.asked.Load(), boxes.ran.Load(); asked != c.asked || ran != c.ran {
				t.Errorf("asked %d times and ran %d times, want %d and %d", asked, ran, c.asked, c.ran)
			}
			if dropped := testutil.ToFloat64(x.metrics.dropped); dropped != float64(c.dropped) || log.n != c.result {
				t.Errorf("dropped %v jobs and stored %d results, want %d and %d", dropped, log.n, c.dropped, c.result)
			}
		})
	}
}

// finishes counts results.
type finishes struct {
	memoryLog
	n int
}

func (l *finishes) Finish(context.Context, execution.Result) error {
	l.n++
	return nil
}
