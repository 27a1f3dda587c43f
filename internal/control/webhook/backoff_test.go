package webhook

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{time.Second, time.Minute}
	for failed, want := range map[int]time.Duration{1: time.Second, 2: time.Minute} {
		if wait, ok := b.After(failed); !ok || wait != want {
			t.Errorf("after %d failed attempts: %s, %t", failed, wait, ok)
		}
	}
	if _, ok := b.After(3); ok {
		t.Error("an attempt is left after the last wait")
	}
	for failures, want := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second, 7: time.Minute, MaxOwnFailures: time.Minute} {
		if wait := AfterOwn(failures); wait != want {
			t.Errorf("after %d failures of the server: %s, want %s", failures, wait, want)
		}
	}
}
