package httpapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Starter returns the caller as one who starts runs. The answer's headers tell the rates that a run
// counts against.
func (c *Call) Starter() *admission.Caller {
	return &admission.Caller{Principal: c.Caller, Rated: func(left ratelimit.Rates, refused error) {
		c.TellRates(left)
		c.RateLimited(refused)
	}}
}

// TellRates sets the headers of an answer that report the remaining rates of a model.
func (c *Call) TellRates(left ratelimit.Rates) {
	to := c.W.Header()
	for what, r := range map[string]ratelimit.Rate{"requests": left.Responses, "tokens": left.Tokens} {
		if r.Limit == 0 {
			continue
		}
		to.Set("x-ratelimit-limit-"+what, strconv.FormatInt(r.Limit, 10))
		to.Set("x-ratelimit-remaining-"+what, strconv.FormatInt(r.Remaining, 10))
		to.Set("x-ratelimit-reset-"+what, r.Reset.Round(time.Millisecond).String())
	}
}

// RateHeaders documents the headers that TellRates sets.
func RateHeaders() (all []Param) {
	for _, what := range [][2]string{{"requests", "Responses"}, {"tokens", "Tokens"}} {
		all = append(all,
			Param{Name: "x-ratelimit-limit-" + what[0], Type: Int, Doc: what[1] + " a minute that the plan gives the key or its tenant, of this model. The header is absent without a limit."},
			Param{Name: "x-ratelimit-remaining-" + what[0], Type: Int, Doc: what[1] + " that are left now."},
			Param{Name: "x-ratelimit-reset-" + what[0], Doc: "Until all are there again, such as 350ms, 1s and 6m0s.", Pattern: "^([0-9]+m)?([0-9.]+(s|ms))$"},
		)
	}
	return all
}

// Outputs are the files that executions have left.
type Outputs interface {
	Get(ctx context.Context, t tenant.ID, traceID string) (*execution.Execution, error)
	File(ctx context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error)
}

// ServeOutput writes a file that an execution has left, by the name under which it is stored. It fails
// with gone if the execution's record is gone.
func (c *Call) ServeOutput(from Outputs, traceID, stored, name string, gone error) error {
	e, err := from.Get(c.Context(), c.Caller.Tenant.ID, traceID)
	if fault.KindOf(err) == fault.NotFound {
		return gone
	}
	if err != nil {
		return err
	}
	body, err := from.File(c.Context(), e, stored)
	if err != nil {
		return err
	}
	defer body.Close()
	return c.ServeTyped(name, file.MediaType(name), time.Time{}, body)
}

// FileParam is the id of a file that a run has shared.
var FileParam = Param{Name: "file_id", In: InPath, Pattern: "^file_[0-9a-f]{36,48}$", Doc: "The id of the file."}

// FileAnswers are the answers of an operation that calls ServeOutput.
func FileAnswers(unknown Answer) []Answer {
	typed := []Media{{Type: OctetStream}, {Type: AnyMedia}}
	return []Answer{
		{Status: http.StatusOK, Doc: "The file's bytes. Content-Type is by the file's name, application/octet-stream for one that is not known.", Media: typed},
		{Status: http.StatusPartialContent, Doc: "With Range: a part of them.", Media: typed},
		unknown,
		Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable: Range is beyond the end of the file."),
	}
}
