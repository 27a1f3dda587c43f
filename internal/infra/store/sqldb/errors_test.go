package sqldb

import (
	"context"
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// A database that does not answer in time is unavailable, not a failure of the server.
func TestATimeoutIsUnavailable(t *testing.T) {
	p := &Pool{}
	if err := p.Wrap("write", context.DeadlineExceeded); fault.KindOf(err) != fault.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline: %v", err)
	}
	if err := p.Wrap("write", context.Canceled); errors.As(err, new(*fault.Error)) {
		t.Errorf("a caller that has gone: %v", err)
	}
}
