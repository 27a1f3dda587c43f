package executiontest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/test/atolltest"
)

// rows are the audit rows of a tenant.
func rows(t *testing.T, o Opened, tenant string) []audit.Row {
	t.Helper()
	var all []audit.Row
	for r, err := range o.Audit.Export(t.Context(), tenant, time.Time{}, time.Time{}) {
		must(t, err)
		all = append(all, r)
	}
	return all
}

// calls counts the entries of a tenant's ledger.
func calls(t *testing.T, o Opened, tenant string) (n int64) {
	t.Helper()
	days, err := o.Usage.Summary(t.Context(), tenant, time.Unix(0, 0), time.Now().AddDate(1, 0, 0))
	must(t, err)
	for _, d := range days {
		n += d.Calls
	}
	return n
}

func testEnd(t *testing.T, o Opened) {
	e := admit(t, o, "a", func(e *execution.Execution) { e.Metadata = map[string]string{"k": "v"}; e.Webhook.Secret = "x" })
	r := execution.Result{
		TraceID: e.TraceID, Status: execution.OOM, ExitCode: 137, Error: "memory limit of 512 MiB exceeded",
		Stdout: []byte("out"), Stderr: []byte("err"), StdoutBytes: 1 << 40, StderrBytes: 3, StdoutTruncated: true, StderrTruncated: true,
		Stored: true, OutputTruncated: true, LastSeq: 12, CompletedAt: e.CreatedAt.Add(1234567 * time.Microsecond), PeakMemory: 1 << 33, Start: execution.StartWarm, Isolation: execution.IsolationKey, Hint: "open the network",
	}
	want := *e
	want.Status, want.ExitCode, want.Error, want.Stdout, want.Stderr = r.Status, r.ExitCode, r.Error, r.Stdout, r.Stderr
	want.StdoutBytes, want.StderrBytes, want.StdoutTruncated, want.StderrTruncated = r.StdoutBytes, r.StderrBytes, true, true
	want.Stored, want.OutputTruncated, want.LastSeq, want.CompletedAt, want.PeakMemory, want.Start, want.Isolation, want.Hint = true, true, 12, r.CompletedAt, r.PeakMemory, execution.StartWarm, execution.IsolationKey, r.Hint

	var asked *execution.Execution
	got, first, err := o.Store.Conclude(t.Context(), r, func(e *execution.Execution) execution.Consequences {
		asked = e
		return execution.Consequences{
			Audit: audit.Row{Key: "key_1", ExitStatus: audit.OOM, Retention: 24 * time.Hour},
			Usage: usage.Entry{Key: "key_1", Source: "execute", Seconds: 2, Credits: 0.5},
		}
	})
	must(t, err)
	if !first {
		t.Error("not the first")
	}
	wantSame(t, got, &want)
	wantSame(t, asked, &want)
	got, err = o.Store.Output(t.Context(), "a", e.TraceID)
	must(t, err)
	wantSame(t, got, &want)
	want.Stdout, want.Stderr = nil, nil
	got, err = o.Store.Get(t.Context(), "a", e.TraceID)
	must(t, err)
	wantSame(t, got, &want)

	all := rows(t, o, "a")
	if len(all) != 1 || all[0].TraceID != e.TraceID || all[0].ExitStatus != audit.OOM || all[0].Retention != 24*time.Hour {
		t.Errorf("got %+v", all)
	}
	days, err := o.Usage.Summary(t.Context(), "a", e.CreatedAt, e.CreatedAt.Add(time.Hour))
	must(t, err)
	if len(days) != 1 || days[0].Calls != 1 || days[0].Seconds != 2 || days[0].Credits != 0.5 {
		t.Errorf("got %+v", days)
	}
}

func testFirst(t *testing.T, o Opened) {
	e := admit(t, o, "a")
	want := end(t, o, e, execution.Cancelled)
	for _, status := range []execution.Status{execution.Success, execution.Cancelled} {
		got, first, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: status, ExitCode: 3, Stdout: []byte("late"), CompletedAt: now()}, Follow(1))
		must(t, err)
		if first {
			t.Errorf("%s is the first as well", status)
		}
		wantSame(t, got, want)
	}
	if n, m := len(rows(t, o, "a")), calls(t, o, "a"); n != 1 || m != 1 {
		t.Errorf("%d rows, %d entries", n, m)
	}
	got, err := o.Store.Output(t.Context(), "a", e.TraceID)
	must(t, err)
	wantSame(t, got, want)
}

func testUnknown(t *testing.T, o Opened) {
	got, first, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: "trc_none", Status: execution.Success}, Follow(1))
	if got != nil || first || err != nil {
		t.Errorf("got %v, %v, %v", got, first, err)
	}
	e := admit(t, o, "a")
	for _, status := range []execution.Status{"", execution.Running, "fine"} {
		_, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: status}, Follow(1))
		wantKind(t, fmt.Sprintf("status %q", status), err, fault.Invalid)
	}
	end(t, o, e, execution.Success)
}

// testEndRace has a program's end, a time-out and a cancellation come at once,
// again and again.
func testEndRace(t *testing.T, o Opened) {
	executions := atolltest.Count(100, 1000)
	statuses := []execution.Status{execution.Success, execution.Timeout, execution.Cancelled}
	won, status := make([]atomic.Int32, executions), make([]atomic.Value, executions)
	work := make(chan *execution.Execution)
	index := map[string]int{}
	all := make([]*execution.Execution, executions)
	for i := range all {
		all[i] = New("a")
		index[all[i].TraceID] = i
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for e := range work {
				if _, err := o.Store.Admit(t.Context(), e, execution.Admission{Concurrency: executions}); err != nil {
					t.Error(err)
					continue
				}
				var ends sync.WaitGroup
				for _, k := range rand.Perm(len(statuses)) {
					ends.Go(func() {
						got, first, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: statuses[k], CompletedAt: now()}, Follow(1))
						if err != nil {
							t.Error(err)
						} else if first {
							won[index[e.TraceID]].Add(1)
							status[index[e.TraceID]].Store(got.Status)
						}
					})
				}
				ends.Wait()
			}
		})
	}
	for _, e := range all {
		work <- e
	}
	close(work)
	wg.Wait()
	audited := map[string]int{}
	for _, r := range rows(t, o, "a") {
		audited[r.TraceID]++
	}
	for i, e := range all {
		got, err := o.Store.Get(t.Context(), "a", e.TraceID)
		must(t, err)
		if won[i].Load() != 1 || audited[e.TraceID] != 1 || got.Status != status[i].Load() {
			t.Errorf("execution %d: %d first ends, %d rows, %s", i, won[i].Load(), audited[e.TraceID], got.Status)
		}
	}
	if n := calls(t, o, "a"); n != int64(executions) {
		t.Errorf("%d entries", n)
	}
}

// testBadEnd mixes ends that cannot be recorded with others, which are likely
// to share a transaction with them.
func testBadEnd(t *testing.T, o Opened) {
	var wg sync.WaitGroup
	var good []*execution.Execution
	for i := range 60 {
		e := admit(t, o, "a")
		bad := i%5 == 0
		if !bad {
			good = append(good, e)
		}
		wg.Go(func() {
			_, first, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success}, func(e *execution.Execution) execution.Consequences {
				c := Follow(1)(e)
				if bad {
					c.Audit.Retention = audit.MaxRetention + 24*time.Hour
				}
				return c
			})
			if bad {
				wantKind(t, "a row that is kept too long", err, fault.Invalid)
				return
			}
			if err != nil || !first {
				t.Errorf("an end beside a bad one: %v, %v", first, err)
			}
		})
	}
	wg.Wait()
	unfinished, err := o.Store.Unfinished(t.Context(), now().Add(time.Hour), 100)
	must(t, err)
	if len(unfinished) != 12 || len(rows(t, o, "a")) != len(good) || calls(t, o, "a") != int64(len(good)) {
		t.Errorf("%d are unfinished, %d rows", len(unfinished), len(rows(t, o, "a")))
	}
}

func testClocks(t *testing.T, o Opened) {
	e := admit(t, o, "a")
	got, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success, CompletedAt: e.CreatedAt.Add(-time.Hour)}, Follow(1))
	must(t, err)
	if got.Duration() != 0 {
		t.Errorf("it took %v", got.Duration())
	}
	e = admit(t, o, "a")
	got, _, err = o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success}, Follow(1))
	must(t, err)
	if time.Since(got.CompletedAt).Abs() > time.Minute || got.CompletedAt.Location() != time.UTC {
		t.Errorf("completed at %v", got.CompletedAt)
	}
}

func testOutput(t *testing.T, o Opened) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, c := range []struct{ stdout, stderr []byte }{
		{[]byte("a\x00b"), nil},
		{nil, every},
		{[]byte("\xff\xfe\xed\xa0\x80"), []byte{0}},
		{bytes.Repeat(every, execution.InlineOutput/256), []byte{}},
		{nil, nil},
	} {
		e := admit(t, o, "a")
		_, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success, Stdout: c.stdout, Stderr: c.stderr}, Follow(1))
		must(t, err)
		got, err := o.Store.Output(t.Context(), "a", e.TraceID)
		must(t, err)
		if !bytes.Equal(got.Stdout, c.stdout) || !bytes.Equal(got.Stderr, c.stderr) {
			t.Errorf("%q, %q came back as %q, %q", c.stdout, c.stderr, got.Stdout, got.Stderr)
		}
	}
}

func testWebhook(t *testing.T, o Opened) {
	ctx := t.Context()
	e := admit(t, o, "a", func(e *execution.Execution) {
		e.Webhook = execution.WebhookTarget{URL: "https://example.com", Secret: "s"}
	})
	got, _, err := o.Store.Conclude(ctx, execution.Result{TraceID: e.TraceID, Status: execution.Success}, func(e *execution.Execution) execution.Consequences {
		c := Follow(1)(e)
		c.Webhook = true
		return c
	})
	must(t, err)
	if got.WebhookStatus != execution.WebhookPending || got.Webhook != e.Webhook {
		t.Errorf("got %q, %v", got.WebhookStatus, got.Webhook)
	}
	for _, status := range []execution.WebhookStatus{execution.WebhookPending, execution.WebhookDelivered, execution.WebhookFailed} {
		if status != execution.WebhookPending {
			must(t, o.Store.SetWebhookStatus(ctx, e.TraceID, status))
		}
		if got, err := o.Store.Get(ctx, "a", e.TraceID); err != nil || got.WebhookStatus != status {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	must(t, o.Store.Redeliver(ctx, got))
	if got, err := o.Store.Get(ctx, "a", e.TraceID); err != nil || got.WebhookStatus != execution.WebhookPending {
		t.Errorf("got %+v, %v", got, err)
	}
	wantKind(t, "a delivery that is in progress", o.Store.Redeliver(ctx, got), fault.Conflict)
	wantKind(t, "an unknown execution", o.Store.SetWebhookStatus(ctx, "trc_none", execution.WebhookFailed), fault.NotFound)
}

func testNotStarted(t *testing.T, o Opened) {
	ctx := t.Context()
	e := New("a")
	a := execution.Admission{IdempotencyKey: "k"}
	_, err := o.Store.Admit(ctx, e, a)
	must(t, err)
	got, _, err := o.Store.Conclude(ctx, execution.Result{TraceID: e.TraceID, Status: execution.Failed, ExitCode: -1, NotStarted: true, Error: "no room"}, Follow(1))
	must(t, err)
	if !got.NotStarted || got.ExitCode != -1 {
		t.Errorf("got %+v", got)
	}
	if n, m := len(rows(t, o, "a")), calls(t, o, "a"); n != 1 || m != 0 {
		t.Errorf("%d rows, %d entries", n, m)
	}
	if used, err := o.Usage.Month(ctx, "a"); err != nil || used != 0 {
		t.Errorf("used %v, %v", used, err)
	}
	earlier, err := o.Store.Admit(ctx, New("a"), a)
	if earlier != nil || err != nil {
		t.Errorf("the key still stands for %v, %v", earlier, err)
	}
}

func testCancelled(t *testing.T, o Opened) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := New("a")
	if _, err := o.Store.Admit(ctx, e, execution.Admission{}); err == nil {
		t.Error("admitted")
	}
	_, err := o.Store.Get(t.Context(), "a", e.TraceID)
	wantKind(t, "who has given up", err, fault.NotFound)

	// A caller that gives up at any moment is told the truth: an error says that
	// nothing was recorded.
	var wg sync.WaitGroup
	var mu sync.Mutex
	var refused, admitted []string
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*10)*time.Microsecond)
			defer cancel()
			e := New("a")
			_, err := o.Store.Admit(ctx, e, execution.Admission{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused = append(refused, e.TraceID)
			} else {
				admitted = append(admitted, e.TraceID)
			}
		})
	}
	wg.Wait()
	unfinished, err := o.Store.Unfinished(t.Context(), now().Add(time.Hour), 1000)
	must(t, err)
	var recorded []string
	for _, e := range unfinished {
		recorded = append(recorded, e.TraceID)
	}
	slices.Sort(recorded)
	slices.Sort(admitted)
	if !slices.Equal(recorded, admitted) {
		t.Errorf("%d recorded, %d admitted, %d refused", len(recorded), len(admitted), len(refused))
	}
}
