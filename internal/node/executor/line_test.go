package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TestSlotsAreSharedAmongTenants: a tenant that has come late is not behind all jobs of one
// that came before, and a job that is cancelled while it waits takes no slot.
func TestSlotsAreSharedAmongTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2, 100)
		began := make(chan string, 100)
		ends := map[string]chan struct{}{}
		job := func(ctx context.Context, tenant, name string) {
			if err := l.enter(tenant); err != nil {
				t.Fatal(err)
			}
			end := make(chan struct{})
			ends[name] = end
			go func() {
				defer l.leave(tenant)
				release, err := l.slot(ctx, tenant)
				if err != nil {
					return
				}
				began <- name
				<-end
				release()
			}()
			synctest.Wait()
		}
		for i := range 10 {
			job(t.Context(), "first", fmt.Sprint("first ", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		job(ctx, "late", "cancelled")
		job(t.Context(), "late", "late 0")
		job(t.Context(), "late", "late 1")
		job(t.Context(), "later", "later 0")
		cancel()
		synctest.Wait()
		var got []string
		for len(began) > 0 || len(ends) > len(got)+1 {
			name := <-began
			got = append(got, name)
			if len(got) > 1 { // two run at a time; the one that began before ends
				close(ends[got[len(got)-2]])
			}
			synctest.Wait()
		}
		close(ends[got[len(got)-1]])
		synctest.Wait()
		want := []string{"first 0", "first 1", "late 0", "first 2", "late 1", "first 3", "later 0", "first 4"}
		if fmt.Sprint(got[:len(want)]) != fmt.Sprint(want) || len(got) != 13 {
			t.Errorf("they began in the order %q", got)
		}
		if l.running != 0 || l.places != 0 || len(l.tenants) != 0 {
			t.Errorf("%d run, %d have places, of %d tenants", l.running, l.places, len(l.tenants))
		}
	})
}

// TestPlacesAreLeftToTenantsWithFew: others' jobs do not take all places of a line.
func TestPlacesAreLeftToTenantsWithFew(t *testing.T) {
	l := newLine(8, 312)
	for _, tenant := range []string{"a", "b"} {
		for l.enter(tenant) == nil {
		}
	}
	if has := l.tenants["a"].places; has != 320 {
		t.Errorf("the first has %d places", has)
	}
	if err := l.enter("a"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("beyond the places: %v", err)
	}
	for i := range 3 {
		if err := l.enter(fmt.Sprint("late ", i)); err != nil {
			t.Errorf("a tenant that has none: %v", err)
		}
	}
	for i := range 100 {
		_ = l.enter(fmt.Sprint("many ", i))
	}
	if l.places != 340 {
		t.Errorf("there are %d places", l.places)
	}
	release := l.force("a")
	release()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("left")
	cancel(cause)
	for range 2 {
		l.force("b")
	}
	l.running = l.slots
	if _, err := l.slot(ctx, "a"); !errors.Is(err, cause) {
		t.Errorf("a job that was cancelled: %v", err)
	}
}

func TestARefusalSaysHowLongTheLineIs(t *testing.T) {
	l := newLine(2, 100)
	for l.enter("a") == nil {
	}
	wait := func() time.Duration {
		f, ok := errors.AsType[*fault.Error](l.enter("a"))
		if !ok {
			t.Fatal("a full line took a job")
		}
		return f.RetryAfter
	}
	if got := wait(); got != minRetry {
		t.Errorf("without an average: %v, want %v", got, minRetry)
	}
	l.note(200 * time.Millisecond) // 102 wait, 2 at a time
	if got := wait(); got != 102*200*time.Millisecond/2 {
		t.Errorf("after jobs of 200 ms: %v", got)
	}
	for range 1000 {
		l.note(time.Hour)
	}
	if got := wait(); got != maxRetry {
		t.Errorf("after jobs of an hour: %v, want %v", got, maxRetry)
	}
}
