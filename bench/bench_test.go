package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

func TestParseMidpoints(t *testing.T) {
	const log = `D1121 03:37:18.348760       1 timing.go:125] Timer for runsc boot: Timeline runsc boot reached midpoint chroot set up at 03:37:18.348760234 (unix nanos: 1795232238348760234)
I1121 03:37:18.150579       1 boot.go:378] Setting host-thp-shmem-enabled: "never"
D1121 03:37:18.380142       1 timing.go:210] Timer for runsc boot: Timeline runsc boot forked into child timeline runsc boot/root container at 03:37:18.380028968 (unix nanos: 1795232238380028968)
D1121 03:37:18.381025       1 timing.go:125] Timer for runsc boot: Timeline runsc boot/root container reached midpoint mounted "/dev" at 03:37:18.381025087 (unix nanos: 1795232238381025087)
`
	got, err := parseMidpoints(log)
	if err != nil {
		t.Fatal(err)
	}
	want := []midpoint{
		{"chroot set up", time.Unix(0, 1795232238348760234)},
		{`root container: mounted "/dev"`, time.Unix(0, 1795232238381025087)},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMedianStages(t *testing.T) {
	at := func(ms ...int) []step {
		names := []string{"", "exec", "spec", "exec", "end"}
		var points []midpoint
		for i, m := range ms {
			points = append(points, midpoint{names[i], time.UnixMilli(int64(m))})
		}
		return between(points)
	}
	// A processor that does nothing else is used half of the time.
	used := func(at time.Time) time.Duration { return time.Duration(at.UnixNano()) / 2 }
	const ms = time.Millisecond
	got := medianStages([][]step{at(0, 10, 11, 31, 32), at(0, 20, 22, 62, 63), at(0, 30, 33, 93)}, used)
	want := []stage{{"exec", 0, 0, 20 * ms, 10 * ms}, {"spec", 0, 20 * ms, 2 * ms, ms}, {"exec", 0, 22 * ms, 40 * ms, 20 * ms}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Each call takes one and a half intervals: a loop that waited for it
		// would fall behind.
		begun := time.Now()
		sample, err := openLoop(t.Context(), 10, time.Second, func(ctx context.Context) error {
			return wait(ctx, 1500*time.Millisecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 10500*time.Millisecond {
			t.Errorf("ten calls took %s", took)
		}
		for _, d := range append(sample.due, sample.sent...) {
			if d != 1500*time.Millisecond {
				t.Errorf("a call took %s", d)
			}
		}
	})
}

func TestOpenLoopFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := openLoop(t.Context(), 3, time.Millisecond, func(context.Context) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		got, err := closedLoop(t.Context(), 4, 2*time.Second, 10*time.Second, func(ctx context.Context) error {
			calls.Add(1)
			return wait(ctx, 300*time.Millisecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		// 33 or 34 calls of 0.3 s fit into 10 s; those of the lead do not count.
		if n := len(got.each); n != 4*33 && n != 4*34 {
			t.Errorf("%d calls counted", n)
		}
		if got.perSecond() != float64(len(got.each))/10 {
			t.Errorf("%v per second for %d calls", got.perSecond(), len(got.each))
		}
		if int(calls.Load()) <= len(got.each) {
			t.Error("the lead's calls were counted")
		}
	})
}

func TestClosedLoopFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var calls atomic.Int64
		begun := time.Now()
		_, err := closedLoop(t.Context(), 2, time.Second, time.Hour, func(ctx context.Context) error {
			if calls.Add(1) == 5 {
				return broken
			}
			return wait(ctx, time.Second)
		})
		if !errors.Is(err, broken) {
			t.Errorf("error = %v", err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("the loop went on for %s after it had failed", took)
		}
	})
}

// taker returns a sample that notes when it was taken, and fails from its n-th on.
func taker(notes *string, name string, n int) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if n--; n < 0 {
			return 0, errors.New(name + " is broken")
		}
		*notes += name
		return time.Second, nil
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		n, count int
		want     string
	}{
		{1, 1, "bmbm"},
		{3, 3, "bmbmbmbm"},
		{4, 2, "bmbmmbmm"},
		{2, 5, "bmbbmbbbm"},
		{30, 10, "bm" + strings.Repeat("bmmm", 10)},
	} {
		var notes string
		got, err := compare(c.n, taker(&notes, "m", 100), baseline{"base", c.count, taker(&notes, "b", 100)})
		if err != nil || notes != c.want || len(got.measured) != c.n || len(got.beside) != c.count || got.failed != nil {
			t.Errorf("%d beside %d: %s, %+v, %v", c.n, c.count, notes, got, err)
		}
		if r := got.row("a case", 1000).Judge(); r.Baseline != 1000 || r.Ratio != 1 || r.Verdict != report.Passed {
			t.Errorf("the row: %+v", r)
		}
	}
}

func TestCompareFails(t *testing.T) {
	for good := range 4 {
		var notes string
		got, err := compare(3, taker(&notes, "m", 100), baseline{"base", 3, taker(&notes, "b", good)})
		if err != nil || got.failed == nil || len(got.measured) != 3 {
			t.Fatalf("a baseline that fails after %d: %+v, %v", good, got, err)
		}
		r := got.row("a case", 2000).Judge()
		if r.Measured != 1000 || r.Baseline != 0 || r.Verdict != report.Failed || r.Err != "the baseline, base: b is broken" {
			t.Errorf("the row: %+v", r)
		}
		if _, err := compare(3, taker(&notes, "m", good), baseline{"base", 3, taker(&notes, "b", 100)}); err == nil {
			t.Errorf("what fails after %d was measured", good)
		}
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-quick", "-only", "warm,load"})
	if err != nil || !o.quick || len(o.groups) != 2 || o.out != "" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse(nil); err != nil || o.out == "" || len(o.groups) != len(groups) {
		t.Errorf("a full run: %+v, %v", o, err)
	}
	for _, args := range [][]string{{"-only", "warm,nothing"}, {"extra"}, {"-nonsense"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
