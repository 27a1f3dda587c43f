package sandbox

import (
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// SetRun notes how a run of code in a context ended; failed is why it was not seen to.
func (c *Call) SetRun(id codecontext.ID, res *codecontext.Result, failed error) {
	c.Annotate("context_id", string(id))
	c.Status = audit.Error
	switch {
	case failed != nil:
		c.ExitCode, c.Reason = -1, "the code was not seen to end"
	case res.Status == codecontext.OK:
		c.Status = audit.OK
	case res.Status == codecontext.TimedOut:
		c.Status, c.ExitCode, c.Reason = audit.Timeout, 1, "it timed out"
	case res.Status == codecontext.Interrupted:
		c.Status, c.ExitCode, c.Reason = audit.Cancelled, 1, "the code was interrupted"
	case res.Status == codecontext.Ended:
		c.ExitCode, c.Reason = res.Exit.Code, "the code ended its interpreter"
	default:
		c.ExitCode, c.Reason = 1, "the code ended with an error"
	}
	if res != nil {
		c.StdoutBytes, c.StderrBytes, c.StdoutTruncated, c.StderrTruncated = res.StdoutBytes, res.StderrBytes, res.StdoutTruncated, res.StderrTruncated
		if res.ExitCode != nil {
			c.ExitCode = *res.ExitCode
		}
	}
}

// RunHint tells the caller how to fix code that the network policy may have made fail; "" if
// nothing suggests that. Code succeeds even if a program that it started fails, such as
// !pip install. RunHint recognizes that case by the output. tails are the last bytes of the
// code's streams.
func RunHint(h Handle, res *codecontext.Result, began time.Time, tails ...[]byte) string {
	if e := res.Error; e != nil {
		tails = append(tails, []byte(e.Name+": "+e.Value), []byte(strings.Join(e.Traceback, "\n")))
	}
	failed := res.Status != codecontext.OK || res.ExitCode != nil && *res.ExitCode != 0
	if !failed && !execution.LacksNetwork(tails...) && !execution.Untrusted(tails...) {
		return ""
	}
	return h.NetworkHint(began, tails)
}
