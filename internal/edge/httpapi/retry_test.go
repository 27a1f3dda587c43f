package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func TestRetryAfterIsTheRefusals(t *testing.T) {
	for want, after := range map[string]time.Duration{"1": 0, "2": 1500 * time.Millisecond, "60": time.Minute} {
		f := fault.New(fault.Unavailable, "full")
		f.RetryAfter = after
		h := http.Header{}
		if status, _ := Advise(h, f); status != http.StatusServiceUnavailable || h.Get("Retry-After") != want {
			t.Errorf("%v: %d, Retry-After %q, want %q", after, status, h.Get("Retry-After"), want)
		}
	}
}
