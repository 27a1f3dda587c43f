package approval

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/run"
)

// TestOutcomeOf checks that the recorded status depends on the answer, and never on the text of the
// caller's reason.
func TestOutcomeOf(t *testing.T) {
	for want, a := range map[approval.Status]run.Answer{
		approval.Approved:  {Decision: &run.Decision{Approve: true, Reason: run.Interrupted}},
		approval.Denied:    {Decision: &run.Decision{Reason: run.Interrupted}},
		approval.Cancelled: {Decision: &run.Decision{Reason: run.Interrupted, GivenUp: true}},
		approval.Expired:   {Decision: &run.Decision{}, Expired: true},
	} {
		if got := outcomeOf(&a); got != want {
			t.Errorf("%+v is %s, want %s", a.Decision, got, want)
		}
	}
}
