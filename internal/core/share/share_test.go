package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TestNeighborFindsRoom lets hostile tenants take all they can get; a neighbor is admitted all
// the same.
func TestNeighborFindsRoom(t *testing.T) {
	for _, hostile := range []int{1, 2, 5} {
		p := NewPool("tenant_streams", "streams", 100)
		for i := range 100 * hostile {
			release, err := p.Take(fmt.Sprint("hostile", i%hostile), 1)
			if err == nil {
				continue
			}
			f, _ := errors.AsType[*fault.Error](err)
			if release != nil || f == nil || f.Kind != fault.Exhausted || f.Dimension != "tenant_streams" || f.ResetsAt.IsZero() {
				t.Fatalf("%d hostile: refused by %+v", hostile, err)
			}
		}
		if held := p.Held("hostile0"); held < int64(100/(hostile+1)) {
			t.Errorf("%d hostile: the first holds %d, which is less than its share", hostile, held)
		}
		for range 100 / (hostile + 1) / 2 {
			if _, err := p.Take("neighbor", 1); err != nil {
				t.Fatalf("%d hostile: the neighbor holds %d and is refused: %v", hostile, p.Held("neighbor"), err)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	p := NewPool("tenant_streams", "streams", 100)
	token := Level{"token_streams", "tok_1", 2, "this token"}
	whole := Level{"key_streams", "key_1", 3, "this key"}
	var last func()
	for range 2 {
		release, err := p.Take("a", 1, token, whole)
		if err != nil {
			t.Fatal(err)
		}
		last = release
	}
	refused := func(dimension string, levels ...Level) {
		t.Helper()
		_, err := p.Take("a", 1, levels...)
		if f, _ := errors.AsType[*fault.Error](err); f == nil || f.Kind != fault.Exhausted || f.Dimension != dimension {
			t.Errorf("refused by %+v, want %s", err, dimension)
		}
	}
	refused("token_streams", token, whole)
	if _, err := p.Take("a", 1, Level{"token_streams", "", 2, "no token"}, whole); err != nil {
		t.Fatal(err)
	}
	refused("key_streams", whole)
	last()
	last() // again changes nothing
	if _, err := p.Take("a", 1, token, whole); err != nil || p.Held("a") != 3 {
		t.Errorf("%d are held, %v", p.Held("a"), err)
	}
}

// TestFull refuses a tenant that holds nothing as unavailable, since waiting helps it and nothing
// it can do does.
func TestFull(t *testing.T) {
	p := NewPool("tenant_bytes", "bytes", 10)
	release, err := p.Take("a", 50) // larger than all, alone
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Take("b", 1); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	release()
	if _, err := p.Take("b", 1); err != nil || len(p.held) != 1 {
		t.Errorf("%v, held %v", err, p.held)
	}
}

// TestWait admits a neighbor at once that comes after a hostile tenant's long queue.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool("tenant_writes", "writes", 8)
		var held []func()
		for range 4 {
			release, err := p.Wait(t.Context(), "hostile", 1)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, release)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var queued sync.WaitGroup
		for range 100 {
			queued.Go(func() {
				if release, err := p.Wait(ctx, "hostile", 1); err == nil {
					release()
				}
			})
		}
		synctest.Wait()
		if n := len(p.waiting["hostile"]); n != 100 {
			t.Fatalf("%d callers wait", n)
		}
		for range 2 {
			release, err := p.Wait(t.Context(), "neighbor", 1)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, release)
		}
		for _, release := range held {
			release() // each admits one that waits, which admits the next
		}
		queued.Wait()
		cancel()
		if p.total != 0 || len(p.held) != 0 || len(p.waiting) != 0 {
			t.Errorf("%d are held, %v, waiting %v", p.total, p.held, p.waiting)
		}
	})
}

// TestWaitEnds counts nothing of a wait that was given up.
func TestWaitEnds(t *testing.T) {
	p := NewPool("tenant_writes", "writes", 1)
	release, err := p.Wait(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Wait(ctx, "b", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	release()
	if p.total != 0 || len(p.held) != 0 || len(p.waiting) != 0 {
		t.Errorf("%d are held, %v, waiting %v", p.total, p.held, p.waiting)
	}
}

// TestOrder serves a tenant with one job before one with many, by what they cost.
func TestOrder(t *testing.T) {
	var o Order
	var served []string
	left := map[string]int{"hostile": 6, "small": 1, "other": 2}
	for _, cost := range []float64{5, 1, 1, 1, 1, 1, 1, 1, 1} {
		var waiting []string
		for _, who := range []string{"hostile", "other", "small"} {
			if left[who] > 0 {
				waiting = append(waiting, who)
			}
		}
		next := o.Next(waiting)
		left[next]--
		o.Charge(next, cost)
		served = append(served, next)
	}
	if got := fmt.Sprint(served); got != "[hostile other small other hostile hostile hostile hostile hostile]" {
		t.Error(got)
	}
	if o.Next(nil) != "" {
		t.Error("none waits")
	}
	// A tenant that was away for long is next, and not served for all the time that it was away.
	o.Charge("hostile", 100)
	if next := o.Next([]string{"hostile", "small"}); next != "small" {
		t.Error(next)
	}
	o.Charge("small", 200)
	if next := o.Next([]string{"small", "hostile"}); next != "hostile" {
		t.Error(next)
	}
}

func TestMost(t *testing.T) {
	if got := Most(map[string]int64{"c": 2, "b": 5, "a": 5, "d": 0}); got != "a" || Most(nil) != "" {
		t.Error(got)
	}
}
